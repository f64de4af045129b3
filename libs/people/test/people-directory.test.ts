import { randomUUID } from "node:crypto";
import type { PeopleEntry, PeopleValue, SessionEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { createPeopleDirectory, digestOfSecret } from "../src/index.ts";

const secret = "a".repeat(43);
const at = (ms: number) => new Date(ms).toISOString();

function sessionEntry({ id = randomUUID(), expiresAtMs = 1_000, version = 1, committedAtMs = 0 }) {
  const value: SessionEntry = {
    ...{ kind: "session", session_id: id, secret_sha256: digestOfSecret(secret) },
    ...{ person_id: randomUUID(), via: "passkey", groups: [] },
    ...{ signed_in_at: at(0), confirmed_at: at(0), idle_until: at(expiresAtMs) },
    ...{ expires_at: at(expiresAtMs), version, committed_at: at(committedAtMs) },
  };
  return { address: { kind: "session", sessionId: id }, value } satisfies PeopleEntry;
}

function userEntry(
  personId: string | null,
  { organizationId = randomUUID(), userId = randomUUID(), version = 1 } = {},
) {
  const value: PeopleValue = {
    ...{ kind: "user", organization_id: organizationId, user_id: userId, person_id: personId },
    ...{ governed: true, grants: [{ role: "viewer" }], version, committed_at: at(0) },
  };
  return { address: { kind: "user", organizationId, userId }, value } satisfies PeopleEntry;
}

const ended = ({ address }: PeopleEntry, version: number): PeopleEntry => ({
  address,
  value: { deleted: true, version, committed_at: at(0) },
});

describe("given a directory of people", () => {
  it("finds a session until its end", () => {
    const directory = createPeopleDirectory();
    const entry = sessionEntry({ expiresAtMs: 1_000 });
    directory.apply(entry);
    const cookie = { sessionId: entry.address.sessionId, secret };
    expect(directory.session(cookie, 999)).toMatchObject({ id: entry.address.sessionId });
    expect(directory.session(cookie, 1_000)).toBeUndefined();
  });

  it("does not return an ended session when an older entry is repeated", () => {
    const directory = createPeopleDirectory();
    const entry = sessionEntry({ version: 1 });
    directory.apply(ended(entry, 2));
    directory.apply(entry);
    expect(directory.session({ sessionId: entry.address.sessionId, secret }, 0)).toBeUndefined();
  });

  it("compares each secret, also after a correct one", () => {
    const directory = createPeopleDirectory();
    const entry = sessionEntry({});
    directory.apply(entry);
    const idOf = (given: string) =>
      directory.session({ sessionId: entry.address.sessionId, secret: given }, 0)?.id;
    const other = `${secret.slice(1)}b`;
    expect([other, secret, other, secret].map(idOf)).toEqual([
      undefined,
      entry.address.sessionId,
      undefined,
      entry.address.sessionId,
    ]);
  });

  it("finds the user of a person in each organization, until the user is unlinked", () => {
    const directory = createPeopleDirectory();
    const session = sessionEntry({});
    directory.apply(session);
    const { person_id: personId } = session.value;
    const [first, second] = [userEntry(personId), userEntry(personId)];
    for (const entry of [first, second]) directory.apply(entry);
    const live = directory.session({ sessionId: session.address.sessionId, secret }, 0);
    if (live === undefined) throw new Error("the session was not found");
    const { organizationId } = second.address;
    expect(directory.memberOf(live, organizationId)?.userId).toBe(second.address.userId);
    directory.apply(userEntry(null, { ...second.address, version: 2 }));
    expect(directory.memberOf(live, organizationId)).toBeUndefined();
  });

  it("keeps its state until a full read has finished", () => {
    const directory = createPeopleDirectory();
    const [before, after] = [sessionEntry({}), sessionEntry({})];
    directory.apply(before);
    const read = directory.beginReplacing();
    read.take(after);
    expect(directory.valueOf(before.address)?.version).toBe(1);
    expect(directory.valueOf(after.address)).toBeUndefined();
    read.finish();
    expect(directory.valueOf(before.address)).toBeUndefined();
    expect(directory.valueOf(after.address)?.version).toBe(1);
  });

  it("contains at most twice the live sessions, for any number of ended ones", () => {
    const directory = createPeopleDirectory();
    const entries = Array.from({ length: 3_000 }, (_, index) =>
      sessionEntry({ committedAtMs: index, expiresAtMs: index + 10 }),
    );
    for (const entry of entries) directory.apply(entry);
    const known = entries.filter(({ address }) => directory.valueOf(address) !== undefined);
    expect(known.length).toBeLessThanOrEqual(1_000);
    expect(directory.valueOf(entries.at(-1)?.address ?? fail)?.version).toBe(1);
  });
});

const fail = { kind: "session", sessionId: "none" } as const;
