// Tells the relay which session this terminal shows: opencode's server does not know it. Loaded by the relay for the
// programs it starts, through OPENCODE_TUI_CONFIG; it reads the route, writes one small file, and does nothing else.
import { renameSync, writeFileSync } from "node:fs"

const LOOK_MS = 200

export default {
  id: "agent-relay-view",
  tui: async (api, options) => {
    const path = options?.path
    if (typeof path !== "string") return
    let told = ""
    const look = () => {
      try {
        const route = api.route.current
        const text = JSON.stringify({ name: route.name, session: route.params?.sessionID ?? "" })
        if (text === told) return
        writeFileSync(path + ".tmp", text, { mode: 0o600 })
        renameSync(path + ".tmp", path)
        told = text
      } catch {
        // The relay does without.
      }
    }
    look()
    const timer = setInterval(look, LOOK_MS)
    api.lifecycle.onDispose(() => clearInterval(timer))
  },
}
