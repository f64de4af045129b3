import { existsSync } from "node:fs";
import { describe } from "@jest/globals";
import { executablePath } from "./start-chromium.ts";

export { type Browser, startChromium } from "./start-chromium.ts";

/**
 * Describes tests in a browser. Without Chromium they are skipped with a notice on stderr, unless `REQUIRE_CHROMIUM=1`
 * is set.
 */
export function describeInChromium(title: string, tests: () => void): void {
  if (existsSync(executablePath) || process.env.REQUIRE_CHROMIUM === "1") {
    describe(title, tests);
    return;
  }
  process.stderr.write(
    `\nSKIPPED: the tests "${title}", because ${executablePath} does not exist. ` +
      "Install it with `apt-get install chromium`; REQUIRE_CHROMIUM=1 turns this into a failure.\n\n",
  );
  describe.skip(title, tests);
}
