import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "@jest/globals";
import { type BrowserContext, chromium } from "playwright-core";

/** Debian's Chromium, with a fresh profile and without background requests. */
const executablePath = "/usr/bin/chromium";
const switches = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

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

export type Browser = { context: BrowserContext; close(): Promise<void> };

export async function startChromium(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), "halyard-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: switches,
  });
  return {
    context,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
