/**
 * The site of these pages: `npm run docs:site` builds it into `site/`. The sidebar has every page, in the order in
 * which a reader needs them; a page that it leaves out, and a link to a page that is not there, fail the build.
 */
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type DefaultTheme } from 'vitepress';
import { slugOf } from '../../scripts/docs/slug.ts';

const docs = new URL('../', import.meta.url).pathname;

const titleOf = (page: string): string => {
  const [, title = page] = /^# (.*)$/m.exec(readFileSync(join(docs, `${page}.md`), 'utf8')) ?? [];
  return title.replaceAll('`', '');
};
const item = (page: string): DefaultTheme.SidebarItem => ({
  text: titleOf(page),
  link: page === 'index' ? '/' : `/${page}`,
});

const pagesIn = (folder: string): string[] =>
  readdirSync(join(docs, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => join(folder, file.slice(0, -'.md'.length)));

/** The way through the pages. */
const WAY: Readonly<Record<string, readonly string[]>> = {
  Start: ['index', 'concepts'],
  Use: [
    'many-jobs',
    'services',
    'neighbours',
    'placement-rules',
    'cluster',
    'secrets',
    'simulation',
    'policies',
    'write-a-policy',
    'workloads',
    'market',
    'datasets',
  ],
  Operate: ['local-mode', 'local-access', 'deploy', 'running-on-aws', 'security', 'archive'],
  Understand: [
    'architecture',
    'glossary',
    'estimate',
    'acquire',
    'plan',
    'forecast',
    'forecast-capacity',
    'aws-store',
    'results',
  ],
  Extend: ['forecast-training', 'localstack', 'aws-double'],
  Reference: pagesIn('reference'),
  Decisions: pagesIn('adr'),
};

const missing = pagesIn('').filter((page) => !Object.values(WAY).flat().includes(page));
if (missing.length > 0) throw new Error(`docs/.vitepress/config.ts: no place in the sidebar for ${missing.join(', ')}`);

export default defineConfig({
  title: 'Ebbtide',
  description: 'Batch jobs on EC2 spot, on-demand and reserved capacity: deadlines met at the lowest cost.',
  outDir: '../site',
  cacheDir: '../.cache/site',
  cleanUrls: false,
  ignoreDeadLinks: false,
  markdown: { anchor: { slugify: slugOf } },
  // Fonts and icons come with the pages: the built site asks no other host.
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: Object.entries(WAY).map(([text, pages]) => ({
      text,
      collapsed: text === 'Decisions',
      items: pages.map(item),
    })),
  },
  buildEnd({ outDir }) {
    for (const file of readdirSync(join(docs, 'reference')).filter((name) => name.endsWith('.json')))
      cpSync(join(docs, 'reference', file), join(outDir, 'reference', file));
  },
});
