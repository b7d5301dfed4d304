/**
 * Entrance of services: one Application Load Balancer. Its listeners and target groups are made with the services, by
 * the function `serve`. Only with `services` in the configuration: a load balancer costs money day and night.
 */
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as elb from 'aws-cdk-lib/aws-elasticloadbalancingv2';
import { Construct } from 'constructs';
import { acknowledge } from './acknowledged.ts';
import type { DeploymentConfig } from './config.ts';
import type { Network } from './network.ts';

export interface ServicesProps {
  /** Who reaches services. */
  readonly from: Exclude<DeploymentConfig['services'], 'off'>;
  readonly network: Network;
  readonly certificateArn: string | undefined;
}

/** Ports that ECS chooses for containers ("hostPort", API_PortMapping). */
const HOST_PORTS = ec2.Port.tcpRange(32_768, 65_535);
/** Private addresses (RFC 1918): those of a VPC, and of networks that are connected with it. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'];

export class Services extends Construct {
  readonly balancer: elb.CfnLoadBalancer;
  /** Who may connect to services. */
  readonly securityGroup: ec2.SecurityGroup;
  readonly certificateArn: string | undefined;

  constructor(scope: Construct, id: string, { from, network, certificateArn }: ServicesProps) {
    super(scope, id);
    this.certificateArn = certificateArn;
    const isPublic = from === 'public';
    this.securityGroup = new ec2.SecurityGroup(this, 'Entrance', {
      vpc: network.vpc,
      description: 'Ebbtide services: their clients. The load balancer listens at ports of services alone.',
      allowAllOutbound: false,
    });
    for (const range of isPublic ? ['0.0.0.0/0'] : PRIVATE) {
      this.securityGroup.addIngressRule(ec2.Peer.ipv4(range), ec2.Port.allTcp(), 'Clients of services');
    }
    this.securityGroup.addEgressRule(network.securityGroup, HOST_PORTS, 'Replicas');
    network.securityGroup.addIngressRule(this.securityGroup, HOST_PORTS, 'Requests of services');
    this.balancer = new elb.CfnLoadBalancer(this, 'Balancer', {
      type: 'application',
      scheme: isPublic ? 'internet-facing' : 'internal',
      ipAddressType: 'ipv4',
      subnets: network.subnets.map(({ subnetId }) => subnetId),
      securityGroups: [this.securityGroup.securityGroupId],
      loadBalancerAttributes: [
        { key: 'routing.http.drop_invalid_header_fields.enabled', value: 'true' },
        { key: 'deletion_protection.enabled', value: 'false' },
      ],
    });
    // A load balancer of the internet needs the way there first.
    if (isPublic) this.balancer.node.addDependency(network.vpc.internetConnectivityEstablished);
    acknowledge(this.balancer, {
      'AwsSolutions-ELB2':
        'Access logs need a bucket of their own and are billed per request; switch them on with `services.balancer` where you need them.',
    });
    if (isPublic) {
      acknowledge(this.securityGroup, {
        'AwsSolutions-EC23': 'The configuration asks for services that the internet reaches (`services: public`).',
      });
    }
  }
}
