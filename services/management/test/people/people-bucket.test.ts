import { randomBytes, randomUUID } from "node:crypto";
import { completeAt, createEntrySigner } from "@halyard/api-keys";
import {
  type PeopleAddress,
  type PeopleComplete,
  peopleBucket,
  peopleCompleteKey,
  peopleKey,
  peopleSignaturePrefix,
} from "@halyard/contracts";
import { createPeopleDirectory, findPeopleComplete, followPeople } from "@halyard/people";
import { json } from "@halyard/postgres";
import { eventually, privateKeyOf, testSignatures, testSigner } from "@halyard/testing";
import { createWakeUp } from "@halyard/timing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { personToPublish } from "../../src/outbox/outbox-message.ts";
import { ended } from "../../src/outbox/people-entries.ts";
import { createWriter } from "../../src/outbox/write.ts";
import { beginSession, endSessions } from "../../src/people/sessions.ts";
import type { Lease } from "../../src/publishing/lease.ts";
import { publishPeople } from "../../src/publishing/publish-people.ts";
import { openRebuilds } from "../rebuild-fixture.ts";

/** The test is the relay's leader, and the follower is that of every service. */
const { sql, broker, lease, ...rebuilds } = await openRebuilds();
await lease.acquire();
const { connection, logger, manager, client } = broker;
const directory = createPeopleDirectory();
const genuine = testSignatures();
/** Keys of the entries that the follower has verified, with their prefix. */
const verified: string[] = [];
const signatures: typeof genuine = {
  ...genuine,
  isGenuine(key, entry) {
    verified.push(key);
    return genuine.isGenuine(key, entry);
  },
};
const follower = followPeople({ connection, directory, signatures, logger });
const wakeUp = createWakeUp();
const write = createWriter({ sql, newId: uuidv7, wakeRelay: wakeUp.wake });
let stopLeading: (() => Promise<void>) | undefined;

afterEach(() => stopLeading?.());
afterAll(async () => {
  await follower.stop();
  await rebuilds.close();
});

const optionsOf = (over: Lease) => ({
  ...{ sql, broker, lease: over, signer: testSigner, wakeUp },
  newEpoch: randomUUID,
  isLeading: () => true,
});

/** Publishes until the end of the test. A term that fails is followed by another one. */
function lead(): void {
  const ending = new AbortController();
  const leading = (async () => {
    while (!ending.signal.aborted)
      await publishPeople(optionsOf(lease), ending.signal).catch(() => undefined);
  })();
  stopLeading = async () => {
    ending.abort();
    wakeUp.wake();
    await leading;
    stopLeading = undefined;
  };
}

const signIn = (personId: string) =>
  write((given) =>
    beginSession(
      { ...given, now: () => new Date(), newId: uuidv7 },
      { personId, via: "passkey", groups: [], address: "127.0.0.1", userAgent: "a browser" },
    ),
  ) as ReturnType<typeof beginSession>;

async function givenPerson(): Promise<string> {
  const id = uuidv7();
  await sql`insert into people (id, created_at) values (${id}, now())`;
  return id;
}

const userOf = () => ({ organizationId: randomUUID(), userId: randomUUID() });

/** Writes the entry of a user with a role in the organization. */
function putUser(user: ReturnType<typeof userOf>, role: "viewer" | "admin") {
  const ids = { organization_id: user.organizationId, user_id: user.userId, person_id: null };
  const content = { kind: "user" as const, ...ids, governed: true, grants: [{ role }] };
  return write(async ({ publish }) => {
    publish([personToPublish({ address: { kind: "user", ...user }, content })]);
    return {};
  });
}

const roleOf = ({ organizationId, userId }: ReturnType<typeof userOf>) =>
  directory.user(organizationId, userId)?.grants[0]?.role;

const expectRole = (user: ReturnType<typeof userOf>, role: "viewer" | "admin" | undefined) =>
  eventually(() => roleOf(user) === role, { because: `the follower has the role ${role}` });

const epochNow = async () => (await findPeopleComplete(manager))?.complete.epoch;

const isInBucket = async (address: PeopleAddress) =>
  (await manager.direct.getMessage(peopleBucket.streamName, {
    last_by_subj: peopleBucket.subjectPrefix + peopleKey(address),
  })) !== null;

/** Publishes a payload as an attacker with the rights of management's NATS user. */
const publishForged = (key: string, payload: string) =>
  client.publish(peopleBucket.subjectPrefix + key, payload);

/** Copies the entries and the position of their stream. Returns a function that replaces them by the copy. */
async function backUp(): Promise<() => Promise<void>> {
  const entries = await sql`select to_jsonb(people_entries) as row from people_entries`;
  const streams = await sql`select to_jsonb(relay_streams) as row from relay_streams`;
  const rowsOf = (copies: typeof entries) => json(copies.map(({ row }) => row));
  return () =>
    sql.begin(async (tx) => {
      await tx`delete from people_entries`;
      await tx`
        insert into people_entries
        select * from jsonb_populate_recordset(null::people_entries, ${rowsOf(entries)})`;
      await tx`
        update relay_streams as stream
        set stream_created_at = copy.stream_created_at, last_sequence = copy.last_sequence,
          base_sequence = copy.base_sequence
        from jsonb_populate_recordset(null::relay_streams, ${rowsOf(streams)}) as copy
        where copy.stream = stream.stream`;
    });
}

describe("given a leader and a follower of the people bucket", () => {
  it("delivers a session, and its end", async () => {
    lead();
    const { cookie } = await signIn(await givenPerson());
    await eventually(() => directory.session(cookie, Date.now()));
    await write(({ tx, publish }) => endSessions({ tx, publish }, { sessionId: cookie.sessionId }));
    await eventually(() => directory.session(cookie, Date.now()) === undefined);
  });

  it("finds no session for a wrong secret", async () => {
    lead();
    const { cookie } = await signIn(await givenPerson());
    await eventually(() => directory.session(cookie, Date.now()));
    const secret = randomBytes(32).toString("base64url");
    expect(directory.session({ ...cookie, secret }, Date.now())).toBeUndefined();
  });

  it("removes an entry without effect from the table and the bucket", async () => {
    lead();
    const user = userOf();
    const address = { kind: "user" as const, ...user };
    await putUser(user, "viewer");
    await expectRole(user, "viewer");
    await write(async ({ publish }) => {
      publish([personToPublish({ address, content: ended, removableAt: new Date() })]);
      return {};
    });
    await eventually(async () => !(await isInBucket(address)), { because: "it is purged" });
    expect(await sql`select from people_entries where key = ${peopleKey(address)}`).toHaveLength(0);
    await expectRole(user, undefined);
  });
});

describe("given a leader that crashed between publishing and recording", () => {
  it("writes everything again under a new epoch, without an older value", async () => {
    lead();
    const user = userOf();
    await putUser(user, "admin");
    await expectRole(user, "admin");
    await stopLeading?.();
    const epoch = await epochNow();
    await putUser(user, "viewer");
    const dying: Lease = { ...lease, recordAsLeader: () => Promise.reject(new Error("died")) };
    await expect(publishPeople(optionsOf(dying), new AbortController().signal)).rejects.toThrow(
      "died",
    );
    await expectRole(user, "viewer");
    await putUser(user, "admin");
    lead();
    await eventually(async () => ![undefined, epoch].includes(await epochNow()));
    await expectRole(user, "admin");
  });
});

describe("given a service that starts", () => {
  it("verifies entries in time slices, and is current when all are verified", async () => {
    lead();
    const users = Array.from({ length: 100 }, userOf);
    await Promise.all(users.map((user) => putUser(user, "viewer")));
    await Promise.all(users.map((user) => expectRole(user, "viewer")));
    let [inTurn, mostInTurn] = [0, 0];
    const slow: typeof genuine = {
      ...genuine,
      isGenuine(key, entry) {
        for (const untilMs = performance.now() + 1; performance.now() < untilMs; );
        inTurn += 1;
        mostInTurn = Math.max(mostInTurn, inTurn);
        return genuine.isGenuine(key, entry);
      },
    };
    const started = createPeopleDirectory();
    const options = { connection, directory: started, signatures: slow, logger };
    const starting = followPeople(options);
    let turn = setImmediate(function nextTurn() {
      inTurn = 0;
      turn = setImmediate(nextTurn);
    });
    await eventually(() => starting.isCurrent());
    const missing = users.filter(
      ({ organizationId, userId }) => started.user(organizationId, userId) === undefined,
    );
    expect(missing).toEqual([]);
    // A slice of 10 ms has room for 10 verifications of 1 ms.
    expect(mostInTurn).toBeLessThan(20);
    clearImmediate(turn);
    await starting.stop();
  });
});

describe("given a bucket that is deleted", () => {
  it("writes it again, while followers keep what they have", async () => {
    lead();
    const user = userOf();
    await putUser(user, "admin");
    await expectRole(user, "admin");
    await manager.streams.delete(peopleBucket.streamName);
    expect(roleOf(user)).toBe("admin");
    await putUser(user, "viewer");
    await expectRole(user, "viewer");
  });

  it("is read again without a verification of entries that the follower has", async () => {
    lead();
    const [kept, added] = [userOf(), userOf()];
    await putUser(kept, "admin");
    await expectRole(kept, "admin");
    await manager.streams.delete(peopleBucket.streamName);
    await putUser(added, "viewer");
    await expectRole(added, "viewer");
    expect(roleOf(kept)).toBe("admin");
    const times = (user: ReturnType<typeof userOf>) =>
      verified.filter(
        (key) => key === peopleSignaturePrefix + peopleKey({ kind: "user", ...user }),
      );
    expect([times(kept).length, times(added).length]).toEqual([1, 1]);
  });
});

describe("given a database that is restored from a backup", () => {
  it("returns followers to the roles and sessions of the backup", async () => {
    lead();
    const [changed, added] = [userOf(), userOf()];
    await putUser(changed, "viewer");
    await expectRole(changed, "viewer");
    await stopLeading?.();
    const restore = await backUp();
    lead();
    await putUser(changed, "admin");
    await putUser(added, "admin");
    await expectRole(added, "admin");
    await stopLeading?.();
    await restore();
    lead();
    await expectRole(added, undefined);
    expect(roleOf(changed)).toBe("viewer");
  });
});

describe("given a writer of the bucket without the private key", () => {
  const value = (user: ReturnType<typeof userOf>, version: number) =>
    JSON.stringify({
      ...{ kind: "user", organization_id: user.organizationId, user_id: user.userId },
      ...{ person_id: null, governed: true, grants: [{ role: "owner" }], version },
      committed_at: new Date().toISOString(),
    });
  const keyOf = (user: ReturnType<typeof userOf>) => peopleKey({ kind: "user", ...user });

  /** Waits until the follower has read everything before this entry. */
  async function expectAllRead(): Promise<void> {
    const user = userOf();
    const key = keyOf(user);
    await publishForged(key, await testSigner.sign(peopleSignaturePrefix + key, value(user, 1)));
    await eventually(() => roleOf(user) !== undefined);
  }

  it("ignores entries that are unsigned, signed by another key, or copied from another place", async () => {
    lead();
    await eventually(() => follower.isCurrent());
    await stopLeading?.();
    const [victim, other] = [userOf(), userOf()];
    const key = keyOf(victim);
    const stranger = createEntrySigner(privateKeyOf("x"));
    await publishForged(key, value(victim, 1));
    await publishForged(key, await stranger.sign(peopleSignaturePrefix + key, value(victim, 1)));
    await publishForged(
      key,
      await testSigner.sign(peopleSignaturePrefix + keyOf(other), value(victim, 1)),
    );
    // The signature of an entry of the snapshot does not have the prefix of people.
    await publishForged(key, await testSigner.sign(key, value(victim, 1)));
    await expectAllRead();
    expect(roleOf(victim)).toBeUndefined();
  });

  it("does not read a bucket whose end is signed for another place", async () => {
    lead();
    await eventually(() => follower.isCurrent());
    await stopLeading?.();
    const { state } = await manager.streams.info(peopleBucket.streamName);
    const complete: PeopleComplete = { epoch: randomUUID(), from: 1 };
    const signed = peopleSignaturePrefix + completeAt(state.last_seq + 100);
    const payload = JSON.stringify({ ...complete, signed_by: testSigner.id });
    await publishForged(peopleCompleteKey, await testSigner.sign(signed, payload));
    await eventually(() => !follower.isCurrent());
    const user = userOf();
    lead();
    await putUser(user, "viewer");
    await expectRole(user, "viewer");
    expect(await epochNow()).not.toBe(complete.epoch);
  });
});
