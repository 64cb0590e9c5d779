// How a message can be meant: what one chooses from and searches for. An agent may send others.

export const KINDS = ["message", "action", "state", "thinking"];
