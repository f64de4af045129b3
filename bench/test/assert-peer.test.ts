import { createServer, type Server } from "node:http";
import { afterAll, describe, expect, it } from "@jest/globals";
import { assertPeer } from "../src/peers/assert-peer.ts";
import { listen } from "../src/processes/answer-parent.ts";
import { targetedFlags, withColors } from "../src/targeting/targeted-flags.ts";
import { ofrepBulk } from "../src/targeting/ways-of-asking.ts";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

type Answer = (request: number, flag: number) => boolean | string;

/** Starts a server that evaluates all flags by OFREP. */
function startPeer(keys: readonly string[], evaluate: Answer): Promise<string> {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    const flags = keys.map((key, flag) => ({ key, value: evaluate(requests, flag) }));
    response.end(JSON.stringify({ flags, requests }));
  });
  servers.push(server);
  return listen(server);
}

/** The colors of ten users in the right shares. */
const colors = [...Array(3).fill("blue"), ...Array(2).fill("green"), ...Array(5).fill("red")];

describe("given the values of another server", () => {
  const splits = withColors(targetedFlags(10, ["rollout"]));
  const constants = targetedFlags(10, ["constant"]);
  const check = async (flags: typeof splits, evaluate: Answer) => {
    const keys = flags.map(({ key }) => key);
    return assertPeer(await startPeer(keys, evaluate), { way: ofrepBulk, key: "", flags });
  };

  it("accepts splits with the right shares for any choice of users", async () => {
    const bytes = await check(splits, (request, flag) => colors[(request + flag) % 10]);
    expect(bytes).toBeGreaterThan(0);
  });

  it("rejects a split with other shares", async () => {
    await expect(check(splits, () => "blue")).rejects.toThrow(
      "OFREP: blue has 100 % of the users instead of 30 %",
    );
  });

  it("rejects another value of a constant flag", async () => {
    await expect(check([...splits, ...constants], () => "red")).rejects.toThrow(
      "checkout-flow-variant-0 must be true for user 0",
    );
  });
});
