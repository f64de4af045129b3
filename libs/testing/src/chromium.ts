import { describe } from "@jest/globals";
import { programs } from "./programs.ts";

export { type Browser, startChromium } from "./start-chromium.ts";

/** Describes tests in a browser. They are skipped without Chromium. */
export function describeInChromium(title: string, tests: () => void): void {
  (programs.chromium.isMissing ? describe.skip : describe)(title, tests);
}
