import { describe, expect, it } from "@jest/globals";
import { decideSent } from "../src/settle-sent.ts";

describe("the decision about sent messages", () => {
  const row = (sequence: number, streamCreatedAt = "today") => ({
    id: `message ${sequence}`,
    streamCreatedAt,
    sequence,
  });
  const rows = [row(1), row(2), row(3), row(4), row(1, "yesterday")];

  it("compares the stream, its end and the acknowledged messages", () => {
    const handled = { streamCreatedAt: "today", lastSequence: 3, upTo: 2 };
    expect(decideSent(rows, handled)).toEqual({
      handled: [row(1), row(2)],
      lost: [row(4), row(1, "yesterday")],
    });
  });

  it("decides nothing while the stream does not exist", () => {
    expect(decideSent(rows, undefined)).toEqual({ handled: [], lost: [] });
  });
});
