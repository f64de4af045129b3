import {
  CompleteEntry,
  EnvironmentEntry,
  FlagEntry,
  FlagEvent,
  KeyEntry,
  OrganizationEntry,
  ProjectEntry,
  Tombstone,
} from "@halyard/contracts";
import { z } from "zod";

/** What crosses the broker, for consumers in any language: file name and schema. */
const messages: Readonly<Record<string, z.ZodType>> = {
  "flag-event": FlagEvent,
  "snapshot-complete": CompleteEntry,
  "snapshot-deleted": Tombstone,
  "snapshot-environment": EnvironmentEntry,
  "snapshot-flag": FlagEntry,
  "snapshot-key": KeyEntry,
  "snapshot-organization": OrganizationEntry,
  "snapshot-project": ProjectEntry,
};

export function messageSchemas(): { name: string; schema: unknown }[] {
  return Object.entries(messages).map(([name, schema]) => ({
    name: `${name}.schema.json`,
    schema: { title: name, ...z.toJSONSchema(schema, { io: "input" }) },
  }));
}
