import type { AggregatedResult, Config, Reporter, TestContext } from "@jest/reporters";
import { type Program, programs } from "../programs.ts";

/** Names what a run that skipped tests lacked, in its last line. With `CI`, the run then fails. */
// biome-ignore lint/style/noDefaultExport: Jest takes its reporters as default exports.
export default class MissingPrograms implements Reporter {
  #missing: Program[] = [];
  #isPartial: boolean;

  /** Tests that `-t` leaves out count as skipped. */
  constructor({ testNamePattern }: Config.GlobalConfig) {
    this.#isPartial = Boolean(testNamePattern);
  }

  onRunComplete(_: Set<TestContext>, { numPendingTests }: AggregatedResult): void {
    if (numPendingTests === 0 || this.#isPartial) return;
    this.#missing = Object.values(programs).filter(({ isMissing }) => isMissing);
    if (this.#missing.length === 0) return;
    const list = this.#missing.map(({ name, advice }) => `${name} (${advice})`).join(", ");
    // Jest prints its summary after the reporters.
    process.once("exit", () =>
      process.stderr.write(
        `Tests were skipped, because this run lacks: ${list}.${this.getLastError() ? " With CI, this is a failure." : ""}\n`,
      ),
    );
  }

  getLastError(): Error | undefined {
    const required = this.#missing.filter(({ isRequiredInCi }) => isRequiredInCi);
    if (process.env.CI === undefined || required.length === 0) return undefined;
    return new Error(`CI must run every test, but lacks ${required.map(({ name }) => name)}.`);
  }
}
