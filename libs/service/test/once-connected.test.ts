import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { onceConnected } from "../src/index.ts";

/** A part that needs a connection, and its recorded events. */
function givenPart() {
  const happened: string[] = [];
  const closing = (name: string) => async () => void happened.push(`${name} ended`);
  const arriving = Promise.withResolvers<{ close: () => Promise<void> }>();
  const begun = Promise.withResolvers<void>();
  const part = onceConnected(arriving.promise, async () => {
    happened.push("begun");
    await begun.promise;
    return [closing("first"), closing("second")];
  });
  const connect = () => arriving.resolve({ close: closing("connection") });
  return { happened, part, connect, finishBeginning: begun.resolve };
}

describe("given a part that starts when a connection is established", () => {
  it("releases its resources in reverse order, and then the connection", async () => {
    const { happened, part, connect, finishBeginning } = givenPart();
    connect();
    await nextTurn();
    const stopped = part.stop();
    finishBeginning();
    await stopped;
    expect(happened).toEqual(["begun", "second ended", "first ended", "connection ended"]);
  });

  it("does not wait for the connection when it is stopped, and does not start afterwards", async () => {
    const { happened, part, connect } = givenPart();
    await part.stop();
    connect();
    await nextTurn();
    expect(happened).toEqual([]);
  });
});
