import { recordSpans } from "@halyard/testing";
import type { TraceContext } from "@halyard/tracing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { UnsentRow } from "../../src/outbox/unsent-rows.ts";
import { publishInSpans } from "../../src/publishing/trace-sends.ts";

const contextOf = (spanId: number) => ({
  traceparent: `00-${"a".repeat(32)}-${String(spanId).padStart(16, "0")}-01`,
});
const row = (id: number, given: Partial<UnsentRow> = {}): UnsentRow => ({
  ...{ id, messageId: `message-${id}`, subject: "flag.toggled", payload: "{}" },
  ...{ traceparent: contextOf(id).traceparent, tracestate: null },
  ...given,
});

let recorded: ReturnType<typeof recordSpans>;
beforeEach(() => {
  recorded = recordSpans();
});
afterEach(() => recorded.stop());

describe("given rows of the outbox", () => {
  const message = { subject: "flag.toggled", payload: "{}" };
  const acknowledged = async () => ({ sequences: [1] });

  it("sends a row in the trace of its change, and links to the changes that it supersedes", async () => {
    const superseding = {
      row: row(3, { subject: "an-organization.flag.an-environment.a-flag" }),
      superseded: [row(1), row(2, { traceparent: null })],
    };
    const sent: (TraceContext | undefined)[] = [];
    await publishInSpans("snapshot", [superseding], [message], async (messages) => {
      sent.push(...messages.map(({ trace }) => trace));
      return acknowledged();
    });
    const destination = "$KV.SNAPSHOT_2.{organization_id}.flag.{environment_id}.{flag_id}";
    expect(recorded.spans).toMatchObject([
      {
        name: `send ${destination}`,
        kind: "producer",
        parent: contextOf(3),
        links: [contextOf(1)],
        attributes: {
          "messaging.destination.name": destination,
          "messaging.message.id": "message-3",
        },
        failures: [],
        hasEnded: true,
      },
    ]);
    expect(sent).toEqual([recorded.spans[0]?.context]);
  });

  it.each([
    ["has no trace", { traceparent: null }],
    ["has a damaged trace", { traceparent: "00-1-2-3" }],
  ])("has no span for a row that %s", async (_what, given) => {
    const rows = [{ row: row(1, given), superseded: [] }];
    await publishInSpans("events", rows, [message], acknowledged);
    expect(recorded.spans).toEqual([]);
  });

  it("marks the spans of messages that the broker has not acknowledged", async () => {
    const rows = [1, 2].map((id) => ({ row: row(id), superseded: [] }));
    await publishInSpans("events", rows, [message, message], acknowledged);
    expect(recorded.spans).toMatchObject([
      { failures: [], hasEnded: true },
      { failures: ["not_acknowledged"], hasEnded: true },
    ]);
  });

  it("ends the spans as failed if publishing throws", async () => {
    const rows = [1, 2].map((id) => ({ row: row(id), superseded: [] }));
    const lost = new Error("The connection was lost.");
    const publishing = publishInSpans("events", rows, [message, message], () =>
      Promise.reject(lost),
    );
    await expect(publishing).rejects.toBe(lost);
    const failed = { failures: ["not_acknowledged"], hasEnded: true };
    expect(recorded.spans).toMatchObject([failed, failed]);
  });
});
