// A list of any length of which only what is seen is in the page. Rows may have any height: they are measured when they appear.
//
//   <VirtualList items=${messages} keyOf=${(m) => m.id} render=${(m) => …} stick="bottom" onNearStart=${readOlder} handle=${ref} />
//
// `render` gets an item and the one before it, and is called again when one of the three is another, so let it be the same function
// each time (useCallback), and read signals in the components it names.
//
// What the person looks at does not move when rows are added above or change their height. With stick="bottom" a list that is at its
// end stays there. `handle.current` has `toEnd()` and `toKey(key, { flash })`.

import { Component, classes, createRef, html } from "../lib/ui.js";

const OVERSCAN_PX = 600;
const NEAR_PX = 900; // so early more is asked for
const AT_END_PX = 32;

export class VirtualList extends Component {
  constructor(props) {
    super(props);
    this.box = createRef();
    this.rows = createRef();
    this.heights = new Map();
    this.offsets = [0];
    this.range = [0, 0];
    this.anchor = null; // { key, delta }: the first row that is seen, and how far it is scrolled out
    this.isAtEnd = props.stick === "bottom";
    this.wanted = null; // a key to bring into view as soon as it is here
    this.flashed = null;
    this.observer = new ResizeObserver(() => this.settle());
    if (props.handle) props.handle.current = this;
  }

  componentDidMount() {
    this.observer.observe(this.box.current);
    this.observer.observe(this.rows.current);
    addEventListener("beforeprint", this.onPrint);
    addEventListener("afterprint", this.onPrint);
    this.settle();
  }

  componentDidUpdate() {
    this.settle();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    removeEventListener("beforeprint", this.onPrint);
    removeEventListener("afterprint", this.onPrint);
  }

  /** On paper is all that was read, and not only what is seen. */
  onPrint = ({ type }) => {
    this.isPrinting = type === "beforeprint";
    this.forceUpdate();
  };

  toEnd() {
    this.isAtEnd = true;
    this.anchor = null;
    this.settle();
  }

  /** Brings a row into view, now or as soon as it is among the items. */
  toKey(key, { flash = true } = {}) {
    this.wanted = key;
    if (flash) this.flashed = key;
    this.settle();
    this.forceUpdate();
  }

  /** Measures, keeps in place what is looked at, and chooses which rows are there. */
  settle() {
    const box = this.box.current;
    if (!box || !box.clientHeight) return;
    const hasGrown = this.measure();
    this.locate();
    this.keepPlace(box);
    const isOther = this.choose(box);
    if (hasGrown || isOther) this.forceUpdate();
    this.tellNear(box);
  }

  measure() {
    let hasChanged = false;
    for (const row of this.rows.current.children) {
      const height = row.offsetHeight;
      if (this.heights.get(row.dataset.key) !== height) {
        this.heights.set(row.dataset.key, height);
        hasChanged = true;
      }
    }
    return hasChanged;
  }

  locate() {
    const { items, keyOf, estimate = 60 } = this.props;
    const offsets = new Array(items.length + 1);
    offsets[0] = 0;
    items.forEach((item, index) => { offsets[index + 1] = offsets[index] + (this.heights.get(String(keyOf(item))) ?? estimate); });
    this.offsets = offsets;
    const [height, top] = [`${offsets.at(-1)}px`, `translateY(${offsets[Math.min(this.range[0], items.length)]}px)`];
    const { style } = this.rows.current.parentElement;
    if (style.height !== height) style.height = height; // a write makes the next reading of a size expensive
    if (this.rows.current.style.transform !== top) this.rows.current.style.transform = top;
  }

  keepPlace(box) {
    const end = this.offsets.at(-1) - box.clientHeight;
    const wanted = this.wanted === null ? -1 : this.indexOf(this.wanted);
    if (wanted >= 0) {
      const height = this.offsets[wanted + 1] - this.offsets[wanted];
      const top = Math.max(0, Math.min(end, this.offsets[wanted] - Math.max(0, (box.clientHeight - height) / 2)));
      this.isAtEnd = false;
      if (Math.abs(box.scrollTop - top) > 1) box.scrollTop = top;
      if (this.heights.has(String(this.wanted))) {
        this.anchor = this.anchorAt(box.scrollTop);
        this.wanted = null;
      }
    } else if (this.isAtEnd && this.props.stick === "bottom") {
      if (Math.abs(box.scrollTop - end) > 1) box.scrollTop = end;
    } else if (this.anchor) {
      const index = this.indexOf(this.anchor.key);
      const top = index < 0 ? null : this.offsets[index] + this.anchor.delta;
      if (top !== null && Math.abs(box.scrollTop - top) > 1) box.scrollTop = top;
    }
  }

  indexOf(key) {
    const { items, keyOf } = this.props;
    return items.findIndex((item) => keyOf(item) === key);
  }

  /** The index of the row at this height. */
  at(top) {
    let low = 0;
    let high = Math.max(0, this.offsets.length - 2);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsets[middle] <= top) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  anchorAt(top) {
    const { items, keyOf } = this.props;
    if (!items.length) return null;
    const index = this.at(top);
    return { key: keyOf(items[index]), delta: top - this.offsets[index] };
  }

  choose(box) {
    const top = box.scrollTop;
    const next = [this.at(top - OVERSCAN_PX), Math.min(this.props.items.length, this.at(top + box.clientHeight + OVERSCAN_PX) + 1)];
    const isOther = next[0] !== this.range[0] || next[1] !== this.range[1];
    this.range = next;
    return isOther;
  }

  onScroll = () => {
    const box = this.box.current;
    if (!box) return; // it was scrolled, and gone before that was told
    this.isAtEnd = this.offsets.at(-1) - box.clientHeight - box.scrollTop < AT_END_PX;
    this.anchor = this.anchorAt(box.scrollTop);
    if (this.choose(box)) this.forceUpdate();
    this.tellNear(box);
    this.props.onEnd?.(this.isAtEnd);
  };

  tellNear(box) {
    if (box.scrollTop < NEAR_PX) this.props.onNearStart?.();
    if (this.offsets.at(-1) - box.clientHeight - box.scrollTop < NEAR_PX) this.props.onNearEnd?.();
  }

  render({ items, keyOf, render, label, before, after, class: extra }) {
    const [start, end] = this.isPrinting ? [0, items.length] : [Math.min(this.range[0], items.length), Math.min(this.range[1], items.length)];
    const shown = items.slice(start, end);
    return html`<div class=${classes("virtual", extra)} ref=${this.box} onScroll=${this.onScroll}
      role="region" aria-label=${label} tabindex="0">
      ${before}
      <div class="virtual-space">
        <div class="virtual-rows" ref=${this.rows}>
          ${shown.map((item, index) => html`<${Row} key=${keyOf(item)} id=${keyOf(item)} item=${item} before=${items[start + index - 1]}
            render=${render} isFlashed=${keyOf(item) === this.flashed} />`)}
        </div>
      </div>
      ${after}
    </div>`;
  }
}

/** One row; where it cannot be shown, the others can. */
class Row extends Component {
  shouldComponentUpdate(next, { hasFailed }) {
    const { item, before, render, isFlashed } = this.props;
    return next.item !== item || next.before !== before || next.render !== render || next.isFlashed !== isFlashed || hasFailed;
  }

  componentDidCatch(error) {
    console.error(error);
    this.setState({ hasFailed: true });
  }

  render({ id, item, before, render, isFlashed }, { hasFailed }) {
    return html`<div data-key=${id} class=${classes("virtual-row", isFlashed && "flash")}>
      ${hasFailed ? html`<p class="faint">This cannot be displayed.</p>` : render(item, before)}</div>`;
  }
}
