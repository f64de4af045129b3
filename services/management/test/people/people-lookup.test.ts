import { createKeyLimits } from "@halyard/api-keys";
import { createPeopleDirectory, createPlaces } from "@halyard/people";
import { recordedStatements } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { createPeopleLookup } from "../../src/people/people-lookup.ts";

const address = "192.0.2.1";

/** Looks for the session of a made-up cookie. Returns the number of statements. */
async function lookUp(
  limits: ReturnType<typeof createKeyLimits>,
  { isCurrent }: { isCurrent: boolean },
): Promise<number> {
  const statements = await recordedStatements((sql) =>
    createPeopleLookup({
      groupsOrganizations: [],
      ...{ sql, limits, people: createPeopleDirectory(), places: createPlaces() },
      ...{ peopleAreCurrent: () => isCurrent, placesAreCurrent: () => isCurrent },
    }).session({ sessionId: uuidv7(), secret: "s".repeat(43) }, 0, address),
  );
  return statements.length;
}

describe("given a made-up session", () => {
  it.each([
    ["the directory is current", true],
    ["NATS is away", false],
  ])("costs a query while %s, until its address has sent too many", async (_, isCurrent) => {
    const limits = createKeyLimits({ requestsPerSecond: 1, burst: 2 });
    expect(await lookUp(limits, { isCurrent })).toBe(1);
    for (let sent = 0; sent < 2; sent += 1) limits.rejectInvalidKey(address, 0);
    expect(await lookUp(limits, { isCurrent })).toBe(0);
  });
});
