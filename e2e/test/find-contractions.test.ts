import { describe, expect, it } from "@jest/globals";
import type { DatabaseSchema } from "../src/checks/release/database-schema.ts";
import { findContractions } from "../src/checks/release/find-contractions.ts";

const text = { type: "text", nullable: false, hasDefault: false };
const check = {
  table: "management.users",
  columns: ["email"],
  definition: "CHECK (email <> '')",
  isUnique: false,
};
const primaryKey = {
  table: "management.users",
  columns: ["id"],
  definition: "PRIMARY KEY (id)",
  isUnique: true,
};
const released: DatabaseSchema = {
  columns: {
    "management.users.id": { ...text, hasDefault: true },
    "management.users.email": text,
    "management.users.name": { ...text, nullable: true },
  },
  grants: ["management_service select management.users"],
  rules: { "management.users.users_pkey": primaryKey, "management.users.email_given": check },
  functions: ["management.present_time() returns timestamp with time zone"],
};

/** Returns the released schema with members of one part added, replaced, or (undefined) removed. */
function withPart(
  part: "columns" | "rules",
  changed: Record<string, DatabaseSchema["columns"][string] | typeof check | undefined>,
): DatabaseSchema {
  const entries = Object.entries({ ...released[part], ...changed });
  const kept = entries.filter(([, value]) => value !== undefined);
  return { ...released, [part]: Object.fromEntries(kept) };
}

describe("a schema that expands", () => {
  it("has no contractions", () => {
    expect(findContractions(released, released)).toEqual([]);
  });

  it("may get nullable columns, columns with a default, and tables", () => {
    const after = withPart("columns", {
      "management.users.locale": { ...text, nullable: true },
      "management.users.active": { type: "boolean", nullable: false, hasDefault: true },
      "management.teams.id": text,
    });
    expect(findContractions(released, after)).toEqual([]);
  });

  it("may get rules on new columns, and lose checks", () => {
    const after = withPart("rules", {
      "management.users.email_given": undefined,
      "management.users.locale_known": { ...check, columns: ["locale"] },
    });
    expect(findContractions(released, after)).toEqual([]);
  });
});

describe("a schema that contracts", () => {
  it.each<[string, DatabaseSchema, string]>([
    [
      "a dropped column",
      withPart("columns", { "management.users.name": undefined }),
      "missing column: management.users.name",
    ],
    [
      "another type",
      withPart("columns", { "management.users.email": { ...text, type: "citext" } }),
      "changed type: management.users.email is citext",
    ],
    [
      "a column that became required",
      withPart("columns", { "management.users.name": text }),
      "no longer nullable: management.users.name",
    ],
    [
      "a dropped default",
      withPart("columns", { "management.users.id": text }),
      "missing default: management.users.id",
    ],
    [
      "a new required column",
      withPart("columns", { "management.users.team": text }),
      "new required column: management.users.team",
    ],
    [
      "a revoked grant",
      { ...released, grants: [] },
      "missing grant: management_service select management.users",
    ],
    [
      "a dropped function",
      { ...released, functions: [] },
      "missing function: management.present_time() returns timestamp with time zone",
    ],
    [
      "a dropped unique key",
      withPart("rules", { "management.users.users_pkey": undefined }),
      "missing unique key: management.users.users_pkey",
    ],
    [
      "a narrower check",
      withPart("rules", {
        "management.users.email_given": { ...check, definition: "CHECK (email like '%@%')" },
      }),
      "new rule: management.users.email_given CHECK (email like '%@%')",
    ],
  ])("is reported for %s", (_change, after, found) => {
    expect(findContractions(released, after)).toEqual([found]);
  });
});
