/** A Lambda's code as the CDK takes it. */
import { dirname } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { assemble, handlerFile, type AssetParts } from './bundle.ts';

/** The asset of one Lambda. Made at synthesis, unless the CDK says that its stack needs none. */
export function codeOf(name: string, parts: AssetParts): lambda.Code {
  return lambda.Code.fromAsset(dirname(handlerFile(name)), {
    // What goes into the bundle decides, not the folder of the handler, which imports most of it.
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
