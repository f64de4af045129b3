import { recordSpans } from "@halyard/testing";
import { startSpan, withSpan } from "@halyard/tracing";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { createLogger } from "../src/logger.ts";

let recorded: ReturnType<typeof recordSpans>;
beforeEach(() => {
  recorded = recordSpans();
});
afterEach(() => recorded.stop());

it("logs the trace id of the running work, and none outside of a span", () => {
  const written: string[] = [];
  const destination = { write: (line: string) => written.push(line) };
  const logger = createLogger({ service: "test", level: "info", destination });
  const span = startSpan("work", { parent: null });
  withSpan(span, () => logger.child({ part: 1 }).warn({ code: 7 }, "within"));
  logger.info("outside");
  const [within, outside] = written.map((line) => JSON.parse(line));
  expect(within).toMatchObject({ msg: "within", part: 1, code: 7, trace_id: span?.traceId });
  expect(outside).not.toHaveProperty("trace_id");
});
