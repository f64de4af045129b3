import type { AudienceEntry, EntryOf, FlagEntry } from "@halyard/contracts";

type Address = EntryOf<"flag">["address"];
type Environment = { bytes: number; flags: Map<string, number> };
type Audience = { version: number; bytes: number };

/** The sizes of flags and audiences: their rules and values. Boolean flags without rules need no memory. */
export function createConfigurationSizes() {
  /** By the ids of organization and environment. */
  const organizations = new Map<string, Map<string, Environment>>();
  /** By the ids of organization and audience. */
  const audiences = new Map<string, Map<string, Audience>>();

  function environmentOf({ organizationId, environmentId }: Address): Environment {
    const environments = organizations.get(organizationId) ?? new Map<string, Environment>();
    organizations.set(organizationId, environments);
    const environment = environments.get(environmentId) ?? { bytes: 0, flags: new Map() };
    environments.set(environmentId, environment);
    return environment;
  }

  return {
    /** Applies an entry of a flag. The caller passes no entry that is older than a former one. */
    apply(address: Address, value: EntryOf<"flag">["value"]): void {
      const bytes = "deleted" in value ? 0 : bytesOf(value);
      const environment = environmentOf(address);
      environment.bytes += bytes - (environment.flags.get(address.flagId) ?? 0);
      if (bytes === 0) environment.flags.delete(address.flagId);
      else environment.flags.set(address.flagId, bytes);
    },
    /** Applies an entry of an audience, unless a newer one was applied. */
    applyAudience({ address, value }: EntryOf<"audience">): void {
      const { organizationId, audienceId } = address;
      const known = audiences.get(organizationId) ?? new Map<string, Audience>();
      audiences.set(organizationId, known);
      if (value.version <= (known.get(audienceId)?.version ?? 0)) return;
      const bytes = "deleted" in value ? 0 : bytesOfAudience(value);
      known.set(audienceId, { version: value.version, bytes });
    },
    /** Returns the sum of an organization, without deleted environments. */
    sumOf(organizationId: string, isDeleted: (environmentId: string) => boolean): number {
      const environments = [...(organizations.get(organizationId) ?? [])]
        .filter(([environmentId]) => !isDeleted(environmentId))
        .map(([, environment]) => environment);
      const parts = [...environments, ...(audiences.get(organizationId)?.values() ?? [])];
      return parts.reduce((sum, { bytes }) => sum + bytes, 0);
    },
  };
}

/**
 * Measures like management (`0030_references.sql`): the rules as JSON without the brackets of the list, the requirements,
 * and of a typed flag what it serves and the texts of its values.
 */
function bytesOf({ targeting_rules: rules, serve, requires, variations = [] }: FlagEntry): number {
  return (
    (rules.length === 0 ? 0 : jsonBytes(rules) - 2) +
    (serve === undefined ? 0 : jsonBytes(serve)) +
    (requires === undefined ? 0 : jsonBytes(requires)) +
    variations.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)
  );
}

const bytesOfListEntry = 8;

/** Measures like management (`0029_audiences.sql`). */
function bytesOfAudience({ match, list }: AudienceEntry): number {
  return (match.length === 0 ? 0 : jsonBytes(match) - 2) + bytesOfListEntry * (list?.count ?? 0);
}

/** Returns the size of a value as JSON. Like in PostgreSQL, numbers have no exponents. */
function jsonBytes(content: object): number {
  const text = JSON.stringify(content);
  let added = 0;
  if (/\de[+-]\d/.test(text))
    JSON.stringify(content, (_, value) => {
      if (typeof value === "number") added += withoutExponent(value).length - String(value).length;
      return value;
    });
  return Buffer.byteLength(text) + added;
}

const withoutExponent = (value: number): string =>
  value.toLocaleString("en", { useGrouping: false, maximumSignificantDigits: 21 });
