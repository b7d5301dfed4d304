/** Code of a Lambda for the CDK. */
import { dirname } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { assemble, handlerFile, type AssetParts } from './bundle.ts';

/** Asset of one Lambda. Made at synthesis, unless the CDK says that its stack needs none. */
export function codeOf(name: string, parts: AssetParts): lambda.Code {
  return lambda.Code.fromAsset(dirname(handlerFile(name)), {
    // Hash of the output: the handler's folder holds little of what it imports.
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      image: DockerImage.fromRegistry('never-used'),
      local: {
        tryBundle: (folder) => {
          assemble(name, folder, parts);
          return true;
        },
      },
    },
  });
}
