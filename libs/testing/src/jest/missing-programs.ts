import type { Reporter } from "@jest/reporters";
import { programs } from "../programs.ts";

/** Names the programs whose absence skipped tests, in the last line of a run. With `CI`, the run then fails. */
// biome-ignore lint/style/noDefaultExport: Jest takes its reporters as default exports.
export default class MissingPrograms implements Reporter {
  readonly #missing = Object.values(programs).filter(({ isMissing }) => isMissing);

  onRunComplete(): void {
    if (this.#missing.length === 0) return;
    const list = this.#missing.map(({ name, advice }) => `${name} (${advice})`).join(", ");
    // Jest prints its summary after the reporters.
    process.once("exit", () =>
      process.stderr.write(`Tests were skipped, because this machine lacks: ${list}.\n`),
    );
  }

  getLastError(): Error | undefined {
    const required = this.#missing.filter(({ isRequiredInCi }) => isRequiredInCi);
    if (process.env.CI === undefined || required.length === 0) return undefined;
    return new Error(`CI must run every test, but lacks ${required.map(({ name }) => name)}.`);
  }
}
