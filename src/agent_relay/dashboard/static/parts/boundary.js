// Where a part of the page fails, the rest goes on: <Boundary>…</Boundary> shows what happened in its place.

import { Component, html } from "../lib/ui.js";
import { Failed } from "./empty.js";

export class Boundary extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render({ children }, { error }) {
    return error ? html`<${Failed} error=${error} again=${() => this.setState({ error: null })} />` : children;
  }
}
