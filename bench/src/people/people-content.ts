import { randomUUID } from "node:crypto";
import { completeAt } from "@halyard/api-keys";
import {
  type PeopleAddress,
  type PeopleValue,
  peopleBucket,
  peopleCompleteKey,
  peopleKey,
  peopleSignaturePrefix,
} from "@halyard/contracts";
import { ensurePeople } from "@halyard/jetstream";
import { digestOfSecret } from "@halyard/people";
import { benchSigner } from "../system/signing.ts";
import { writeBucket } from "../system/write-bucket.ts";

const peoplePerOrganization = 10;
const hourMs = 60 * 60 * 1_000;
const dayMs = 24 * hourMs;

/** Writes people without management: each is an editor of one project, and each has a session if there are sessions. */
export async function writePeople(
  natsUrl: string,
  { people, withSessions }: { people: number; withSessions: boolean },
): Promise<void> {
  const records: { key: string; value: string }[] = [];
  const put = (address: PeopleAddress, value: PeopleValue) =>
    records.push({ key: peopleKey(address), value: JSON.stringify(value) });
  const now = Date.now();
  const at = (ms: number) => new Date(now + ms).toISOString();
  const stamp = { version: 1, committed_at: at(0) };
  let [organizationId, projectId] = ["", ""];
  for (let number = 0; number < people; number += 1) {
    if (number % peoplePerOrganization === 0)
      [organizationId, projectId] = [randomUUID(), randomUUID()];
    const [userId, personId, sessionId] = [randomUUID(), randomUUID(), randomUUID()];
    const ids = { organization_id: organizationId, user_id: userId, person_id: personId };
    const grants = [{ role: "editor" as const, project_id: projectId }];
    put(
      { kind: "user", organizationId, userId },
      { kind: "user", ...ids, governed: true, grants, ...stamp },
    );
    if (!withSessions) continue;
    const secret = { session_id: sessionId, secret_sha256: digestOfSecret(sessionId) };
    const times = { signed_in_at: at(0), confirmed_at: at(0), expires_at: at(7 * dayMs) };
    const method = { via: "oidc" as const, groups: [], idle_until: at(12 * hourMs) };
    put(
      { kind: "session", sessionId },
      { kind: "session", ...secret, person_id: personId, ...method, ...times, ...stamp },
    );
  }
  const complete = { epoch: randomUUID(), from: 1, signed_by: benchSigner.id };
  records.push({ key: peopleCompleteKey, value: JSON.stringify(complete) });
  await writeBucket(natsUrl, {
    ...{ bucket: peopleBucket, ensure: ensurePeople, records },
    payloadOf: (key, value, sequence) =>
      benchSigner.sign(
        peopleSignaturePrefix + (key === peopleCompleteKey ? completeAt(sequence) : key),
        value,
      ),
  });
}
