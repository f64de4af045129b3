import { privateKeyOf, recordSpans } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { headers } from "@nats-io/transport-node";
import { messageHeaders, traceOf } from "../src/message-headers.ts";
import { createMessageSigner } from "../src/message-signatures.ts";

const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

describe("with traces", () => {
  let recorded: ReturnType<typeof recordSpans>;
  beforeEach(() => {
    recorded = recordSpans();
  });
  afterEach(() => recorded.stop());

  it("writes the trace context beside the signature, and reads it", async () => {
    const signature = await createMessageSigner(privateKeyOf("m"))({ subject: "a", payload: "b" });
    const trace = { traceparent, tracestate: "vendor=1" };
    const { headers: written } = messageHeaders({ signature, trace });
    expect(traceOf(written)).toEqual(trace);
    expect(written?.get("Halyard-Signature")).toBe(signature);
  });

  it.each([
    ["no headers", undefined],
    ["other headers", "Nats-Msg-Id"],
    ["a malformed header", "traceparent"],
  ])("ignores %s", (_what, name) => {
    const received = name === undefined ? undefined : headers();
    if (name !== undefined) received?.set(name, "00-hostile");
    expect(traceOf(received)).toBeUndefined();
  });
});

it("reads no trace context without traces", () => {
  expect(traceOf(messageHeaders({ trace: { traceparent } }).headers)).toBeUndefined();
});
