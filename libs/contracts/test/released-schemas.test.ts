import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  type Checked,
  checkAudienceEvent,
  checkAuditRecorded,
  checkChangeRequestEvent,
  checkCompleteEntry,
  checkEdgeReport,
  checkEdgeStreams,
  checkEvaluationsReported,
  checkFlagEvent,
  checkProcessStatus,
  checkProtectionEvent,
  checkQuotaEntry,
  checkScheduleDue,
  checkScheduleResolved,
  checkUsageLastSeen,
  checkUsageRecorded,
  checkUserErased,
  compileCheck,
  createAjv,
  type EntryAddress,
  entryKey,
  type JsonSchema,
  parseEntry,
  WebhookPayload,
} from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { sampleMessages } from "./sample-messages.ts";

/**
 * During a rolling upgrade, services of two releases exchange messages, and messages of the previous release wait in
 * streams. From 0.2.0 on, `libs/contracts/released/<version>` contains the message schemas of each release, which never
 * change.
 */
type Reader = (message: unknown) => Checked<unknown>;

const readerOfEntry =
  (kind: EntryAddress["kind"]): Reader =>
  (message) => {
    const ids = {
      organizationId: "o",
      projectId: "p",
      environmentId: "e",
      keyId: "k",
      flagId: "f",
      audienceId: "a",
      sha256: "s",
    };
    const entry = parseEntry(entryKey({ kind, ...ids } as EntryAddress), message);
    if (entry === undefined) throw new Error(`entries of the kind ${kind} have no reader`);
    return entry;
  };

const readers: Readonly<Record<string, Reader>> = {
  "audience-event": checkAudienceEvent,
  "audit-recorded": checkAuditRecorded,
  "change-request-event": checkChangeRequestEvent,
  "edge-report": checkEdgeReport,
  "edge-streams": checkEdgeStreams,
  "evaluations-reported": checkEvaluationsReported,
  "flag-event": checkFlagEvent,
  "process-status": checkProcessStatus,
  "protection-event": checkProtectionEvent,
  "schedule-due": checkScheduleDue,
  "schedule-resolved": checkScheduleResolved,
  "snapshot-audience": readerOfEntry("audience"),
  "snapshot-chunk": readerOfEntry("chunk"),
  "snapshot-complete": checkCompleteEntry,
  "snapshot-deleted": readerOfEntry("flag"),
  "snapshot-environment": readerOfEntry("environment"),
  "snapshot-flag": readerOfEntry("flag"),
  "snapshot-key": readerOfEntry("key"),
  "snapshot-organization": readerOfEntry("organization"),
  "snapshot-plans": readerOfEntry("plans"),
  "snapshot-project": readerOfEntry("project"),
  quota: checkQuotaEntry,
  "usage-last-seen": checkUsageLastSeen,
  "usage-recorded": checkUsageRecorded,
  "user-erased": checkUserErased,
  // Only customers' systems read it.
  "webhook-payload": compileCheck(WebhookPayload),
};

const presentFolder = fileURLToPath(new URL("../../../docs/schemas", import.meta.url));
const releasedFolder = fileURLToPath(new URL("../released", import.meta.url));
const present = readSchemas(presentFolder);

describe("every published message", () => {
  it("has its reader in this test", () => {
    expect(Object.keys(readers).sort()).toEqual(Object.keys(present).sort());
  });

  it.each(Object.entries(present))("%s is read with members of a later release", (name, schema) => {
    const later = addMemberEverywhere(schema) as JsonSchema;
    expect(problemsBetween(later, readerOf(name))).toEqual([]);
  });
});

for (const version of readVersions())
  describe(`given a service of release ${version}`, () => {
    const released = Object.entries(readSchemas(`${releasedFolder}/${version}`));

    it.each(released)("its messages %s are accepted by this commit", (name, schema) => {
      expect(problemsBetween(schema, readerOf(name))).toEqual([]);
    });

    it.each(released)("accepts the messages %s of this commit", (name, schema) => {
      expect(problemsBetween(present[name] ?? {}, readerWith(schema))).toEqual([]);
    });
  });

describe("given a message with two required members, one of them an enum", () => {
  const outcome = { type: "string", enum: ["applied", "cancelled", "failed"] };
  const id = { type: "string" };
  const schema = { type: "object", properties: { id, outcome }, required: ["id", "outcome"] };
  const later = {
    "with a new optional member": { ...schema, properties: { id, outcome, at: id } },
    "without a member": { ...schema, properties: { id }, required: ["id"] },
    "with a new required member": {
      ...schema,
      properties: { id, outcome, at: id },
      required: ["id", "outcome", "at"],
    },
    "with a narrower enum": {
      ...schema,
      properties: { id, outcome: { ...outcome, enum: ["applied", "failed"] } },
    },
    "with a wider enum": {
      ...schema,
      properties: { id, outcome: { ...outcome, enum: [...outcome.enum, "skipped"] } },
    },
  };

  it.each<[keyof typeof later, "agree" | "older messages" | "newer messages"]>([
    ["with a new optional member", "agree"],
    ["without a member", "newer messages"],
    ["with a new required member", "older messages"],
    ["with a narrower enum", "older messages"],
    ["with a wider enum", "newer messages"],
  ])("a later schema %s: %s", (change, expected) => {
    const older = problemsBetween(schema, readerWith(later[change]));
    const newer = problemsBetween(later[change], readerWith(schema));
    const rejected = [
      ...(older.length > 0 ? ["older messages"] : []),
      ...(newer.length > 0 ? ["newer messages"] : []),
    ];
    expect(rejected).toEqual(expected === "agree" ? [] : [expected]);
  });
});

function readVersions(): string[] {
  const entries = readdirSync(releasedFolder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

function readSchemas(folder: string): Record<string, JsonSchema> {
  const suffix = ".schema.json";
  return Object.fromEntries(
    readdirSync(folder)
      .filter((file) => file.endsWith(suffix))
      .map((file) => [
        file.slice(0, -suffix.length),
        JSON.parse(readFileSync(`${folder}/${file}`, "utf8")),
      ]),
  );
}

function readerOf(name: string): Reader {
  const reader = readers[name];
  if (reader === undefined) throw new Error(`no reader of ${name}`);
  return reader;
}

/** Returns a reader with a published schema, because services validate messages with these schemas. */
function readerWith(schema: JsonSchema): Reader {
  const ajv = createAjv();
  const validate = ajv.compile(schema);
  return (message) =>
    validate(message)
      ? { ok: true, value: message }
      : { ok: false, problem: ajv.errorsText(validate.errors) };
}

/** Returns the distinct errors of a reader for sample messages of a writer. */
function problemsBetween(writer: JsonSchema, reader: Reader): string[] {
  const samples = sampleMessages(writer);
  const isOfWriter = readerWith(writer);
  expect(samples.map(isOfWriter).filter(({ ok }) => !ok)).toEqual([]);
  const problems = samples.map(reader).flatMap((read) => (read.ok ? [] : [read.problem]));
  return [...new Set(problems)];
}

/** A reader that ignored a part of a rule, or of what a flag serves, would evaluate something else. */
const partsOfRules = ["targeting_rules", "serve", "requires", "match"];

/** Adds a required member to every object of a schema except those of rules. */
function addMemberEverywhere(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(addMemberEverywhere);
  if (typeof node !== "object" || node === null) return node;
  const copy = Object.fromEntries(
    Object.entries(node).map(([name, value]) => [
      name,
      partsOfRules.includes(name) ? value : addMemberEverywhere(value),
    ]),
  );
  if (copy.type !== "object" || copy.properties === undefined) return copy;
  const member = "member_of_a_later_release";
  const schema = typeof copy.additionalProperties === "object" ? copy.additionalProperties : {};
  return {
    ...copy,
    properties: { ...copy.properties, [member]: { type: "string", ...schema } },
    required: [...(copy.required ?? []), member],
  };
}
