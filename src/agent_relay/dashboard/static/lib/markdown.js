// Text of agents as Markdown, safely: raw HTML stays text, and what is made of it is cleaned once more before it reaches the page.

import { Marked } from "../vendor/marked/marked.js";
import DOMPurify from "../vendor/dompurify/purify.mjs";

const REMEMBERED = 1_500;
const LONGEST = 60_000; // beyond that it is shown as plain text: nobody reads it as prose, and it would take long
const TAGS = ["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "input", "li", "mark", "ol", "p", "pre", "span",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"];
const HARMLESS = ["align", "checked", "class", "disabled", "rel", "start", "tabindex", "target", "title", "type", "data-language"]; // no addresses
const PRE = '<pre tabindex="0"'; // it scrolls sideways, also by keys
const BLOCKS = "p, h1, h2, h3, h4, h5, h6, ul, ol, blockquote, td, th";
const SCHEMES = /^(?:https?|mailto):/i;

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    html: ({ text }) => escape(text),
    image: ({ href, title, text }) => linkTo(href, title, text || href), // nothing is loaded from elsewhere
    link({ href, title, tokens }) { return linkTo(href, title, null, this.parser.parseInline(tokens)); },
    code: ({ text, lang }) => `${PRE} data-language="${escape((lang ?? "").split(/\s/)[0].toLowerCase())}"><code>${escape(text)}\n</code></pre>`,
  },
});

const made = new Map();

/** Clean HTML of a text; `words` are marked in it. */
export function renderMarkdown(text, words = []) {
  const key = words.length ? `${words.join("\u0000")}\u0001${text}` : text;
  const known = made.get(key);
  if (known !== undefined) return known;
  const result = markWords(direct(clean(text)), words);
  made.set(key, result);
  if (made.size > REMEMBERED) made.delete(made.keys().next().value);
  return result;
}

/** The words of a search as the page marks them. */
export const wordsOf = (search) => (search ?? "").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

function clean(text) {
  const html = text.length > LONGEST ? `${PRE}><code>${escape(text)}</code></pre>` : marked.parse(text);
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", ...HARMLESS], ADD_URI_SAFE_ATTR: HARMLESS, ALLOWED_URI_REGEXP: SCHEMES, RETURN_DOM_FRAGMENT: true,
  });
}

/** Each paragraph in the direction of its own first letters; code is written from left to right in any language. */
function direct(fragment) {
  fragment.querySelectorAll(BLOCKS).forEach((block) => { block.dir = "auto"; });
  fragment.querySelectorAll("pre").forEach((block) => { block.dir = "ltr"; });
  return fragment;
}

function linkTo(href, title, text, inner = escape(text)) {
  if (!SCHEMES.test(href)) return inner;
  const says = title ? `${title} (${href})` : href;
  return `<a href="${escape(href)}" title="${escape(says)}" target="_blank" rel="noopener noreferrer nofollow" class="outside">${inner}</a>`;
}

function markWords(fragment, words) {
  if (words.length) {
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${words.map((word) => RegExp.escape?.(word) ?? word).join("|")})`, "giu");
    const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    nodes.forEach((node) => markIn(node, pattern));
  }
  const place = document.createElement("div");
  place.append(fragment);
  return place.innerHTML;
}

function markIn(node, pattern) {
  let at = 0;
  const parts = [];
  for (const found of node.data.matchAll(pattern)) {
    const mark = document.createElement("mark");
    mark.textContent = found[0];
    parts.push(node.data.slice(at, found.index), mark);
    at = found.index + found[0].length;
  }
  if (parts.length) node.replaceWith(...parts, node.data.slice(at));
}

function escape(text) {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
