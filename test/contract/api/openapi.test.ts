import { beforeEach, describe, expect, it } from '@jest/globals';
import { OPERATIONS } from '../../../lib/api/operations.ts';
import { apiUnderTest, type ApiUnderTest } from '../../support/api.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Record<
    string,
    Record<
      string,
      {
        operationId: string;
        responses: Record<string, unknown>;
        requestBody?: { content: Record<string, { examples: Record<string, { value: unknown }> }> };
      }
    >
  >;
  readonly components: { readonly schemas: Record<string, unknown> };
}

let api: ApiUnderTest;
let document: Document;
beforeEach(async () => {
  api = apiUnderTest();
  document = JSON.parse((await api.get('/api/openapi.json')).body) as Document;
});

describe('the OpenAPI document', () => {
  it('is version 3.1 and names every operation once', () => {
    expect(document.openapi).toBe('3.1.0');
    const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((o) => o.operationId));
    expect(ids.sort()).toEqual(OPERATIONS.map((o) => o.id).sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('refers only to schemas that it has', () => {
    const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
      (m) => m[1] ?? '',
    );
    expect(references.length).toBeGreaterThan(20);
    expect(references.filter((name) => !(name in document.components.schemas))).toEqual([]);
  });

  it('has examples that are taken as they stand', async () => {
    for (const path of ['/api/jobs', '/api/jobs/batch']) {
      const examples = document.paths[path]?.['post']?.requestBody?.content['application/json']?.examples ?? {};
      expect(Object.keys(examples).length).toBeGreaterThan(0);
      for (const { value } of Object.values(examples)) {
        const { status, body } = await api.post(path, value);
        expect({ status: status < 300 ? 'taken' : status, body: status < 300 ? '' : body }).toEqual({
          status: 'taken',
          body: '',
        });
        if (path.endsWith('batch')) expect(JSON.parse(body)).toMatchObject({ refused: 0 });
      }
    }
  });
});
