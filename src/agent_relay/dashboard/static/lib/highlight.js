// Colours in code, where its language is known. The library is loaded with the first piece of code; where it cannot be, code stays
// plain, and the next piece tries again.

const LONGEST = 20_000;
let loading = null;

/** Colours the code blocks inside an element that are not coloured yet. */
export async function highlightIn(element) {
  const blocks = [...element.querySelectorAll("pre[data-language] > code:not([data-done])")];
  if (!blocks.length) return;
  loading ??= import("../vendor/highlight/highlight.js");
  const library = await loading.then((module) => module.default, () => null);
  if (!library) {
    loading = null;
    return;
  }
  for (const block of blocks) {
    const language = block.parentElement.dataset.language;
    block.dataset.done = "";
    if (block.textContent.length > LONGEST || !library.getLanguage(language) || block.querySelector("mark")) continue;
    block.innerHTML = library.highlight(block.textContent, { language, ignoreIllegals: true }).value; // it escapes what it is given
  }
}
