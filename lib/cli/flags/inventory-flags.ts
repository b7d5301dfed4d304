import type { By } from '../../domain/costs.ts';

export interface CostOptions {
  readonly by: By;
  readonly idle: 'shared' | 'apart';
}

export interface PoolsOptions {
  readonly option?: string;
  readonly zone?: string;
  readonly type?: string;
  readonly limit: number;
  readonly forecast?: boolean;
  readonly drift?: 'any' | 'capacity';
}

export interface InstancesOptions {
  readonly all?: boolean;
  readonly limit: number;
}

export interface PlansOptions {
  readonly limit: number;
}

export interface NeighboursOptions {
  readonly html?: string;
}
