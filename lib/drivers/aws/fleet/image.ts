import type { Arch } from '../../../domain/pool.ts';

/**
 * Public parameter of Systems Manager with the id of the current ECS-optimised image.
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html
 */
export const imageParameterOf = (arch: Arch): string =>
  `/aws/service/ecs/optimized-ami/amazon-linux-2023/${arch === 'arm64' ? 'arm64/' : ''}recommended/image_id`;
