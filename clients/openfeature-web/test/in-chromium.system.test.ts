import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { build } from "esbuild";
import type { createEvaluationEvents } from "../src/index.ts";

type Window = { createEvaluationEvents: typeof createEvaluationEvents };

/** Bundled for a page. The global variable is that of `Window`. */
const program = `
  import { createEvaluationEvents } from "@halyard/openfeature-web";
  globalThis.createEvaluationEvents = createEvaluationEvents;
`;

describeInChromium("given a page that is hidden", () => {
  let browser: Browser;
  let bundle: string;
  beforeAll(async () => {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: import.meta.dirname },
      ...{ bundle: true, write: false, format: "iife", target: "es2022" },
      conditions: ["halyard-source"],
    });
    bundle = outputFiles[0]?.text ?? "";
    browser = await startChromium();
  });
  afterAll(() => browser?.close());

  it("emits its events before an earlier listener, such as OpenTelemetry's, sends them", async () => {
    const page = await browser.context.newPage();
    await page.addScriptTag({ content: bundle });
    const order = await page.evaluate(() => {
      const done: string[] = [];
      document.addEventListener("visibilitychange", () => done.push("sent"));
      const { createEvaluationEvents: create } = globalThis as unknown as Window;
      const logger = { emit: () => void done.push("emitted") };
      const details = { value: true, flagMetadata: {} };
      create({ logger }).finally({ flagKey: "new-checkout", context: {} }, details);
      Object.defineProperty(document, "visibilityState", { value: "hidden" });
      document.dispatchEvent(new Event("visibilitychange"));
      return done;
    });
    expect(order).toEqual(["emitted", "sent"]);
  });
});
