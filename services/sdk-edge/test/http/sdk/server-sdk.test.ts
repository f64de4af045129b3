import { type Client, createClient } from "@halyard/server-sdk";
import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  apiKey,
  deletedChunk,
  flagEntry,
  id,
  listedAudience,
  organizationWith,
} from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

const { entry, text: serverKey } = apiKey({ key_kind: "reader" });
const inBeta = { targeting_rules: [{ conditions: [{ audience: "beta" }] }], enabled: true };
const listed = listedAudience(["ada", "bob"], { bits: 1 });
const flags = [
  flagEntry({ flag_id: id("flag", 1), key: "search", ...inBeta }),
  flagEntry({
    ...{ flag_id: id("flag", 2), key: "chat", enabled: true },
    requires: [{ flag: "search", is: "on" }],
  }),
];

let edge: EdgeServer;
let client: Client;
beforeEach(async () => {
  edge = await startEdgeServer([
    ...[...organizationWith(), entry, ...flags],
    ...[...listed.chunks, listed.audience],
  ]);
  client = createClient({ baseUrl: edge.url, serverKey });
});
afterEach(async () => {
  await client.close();
  await edge.stop();
});

const valuesOf = (user: string) => client.allFlags({ id: user });
const both = { search: true, chat: true };
const neither = { search: false, chat: false };

describe("given the server SDK and an edge", () => {
  it("evaluates lists and requirements in the application", async () => {
    expect(await client.ready()).toBe(true);
    expect([valuesOf("bob"), valuesOf("eve")]).toEqual([both, neither]);
    expect(client.evaluate("chat", { id: "eve" })).toMatchObject({ prerequisite: "search" });
  });

  it("follows a change of the list, in one step", async () => {
    await client.ready();
    const changes: (readonly string[])[] = [];
    client.on("change", ({ keys }) => void changes.push([...keys].sort()));
    const next = listedAudience(["ada", "eve"], { bits: 1, version: 2 });
    const kept = next.chunks.map(({ address }) => address.sha256);
    const dropped = listed.chunks.filter(({ address }) => !kept.includes(address.sha256));
    await edge.feed(...next.chunks, next.audience, ...dropped.map((each) => deletedChunk(each, 2)));
    await eventually(() => valuesOf("eve").chat);
    expect([valuesOf("bob"), valuesOf("eve")]).toEqual([neither, both]);
    expect(changes).toEqual([["chat", "search"]]);
  });
});
