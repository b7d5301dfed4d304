/**
 * Checks relative links of all Markdown pages and their anchors, because the site's build knows neither anchors nor
 * pages outside of docs/. Pages of docs/ may not link outside of it: the site lacks those pages.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { slugOf } from './slug.ts';

const root = new URL('../../', import.meta.url).pathname;
const pages = [...globSync('*.md', { cwd: root }), ...globSync('{docs,examples,models}/**/*.md', { cwd: root })];

const withoutCode = (text: string): string => text.replaceAll(/```[^]*?```/g, '');
const textOf = (page: string): string => withoutCode(readFileSync(join(root, page), 'utf8'));

/** Anchors of a page. Repeated headings get a number, as on GitHub and on the site. */
function anchorsOf(page: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of textOf(page).matchAll(/^#+ (.*)$/gm)) {
    const slug = slugOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function faultOf(page: string, link: string): string | null {
  const [path = '', anchor = ''] = link.split('#');
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(join(root, target))) return `${page}: ${link}: there is no ${relative('.', target)}`;
  if (page.startsWith('docs/') && target.endsWith('.md') && !target.startsWith('docs/'))
    return `${page}: ${link}: ${target} is no page of the site; name it without a link`;
  if (anchor === '' || !target.endsWith('.md') || anchorsOf(target).has(anchor)) return null;
  return `${page}: ${link}: ${target} has no heading of that name`;
}

const faults = pages.flatMap((page) =>
  [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .flatMap((link) => faultOf(page, link) ?? []),
);
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
