import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Management, openManagement, seedProject } from "./management-fixture.ts";

describe("given a seeded project", () => {
  let management: Management;
  let project: Awaited<ReturnType<typeof seedProject>>;
  beforeAll(async () => {
    management = await openManagement();
    project = await seedProject(management);
  });
  afterAll(() => management.close());

  it.each(["serverKey", "environmentOnlyKey"] as const)(
    "accepts its %s after a full read of the snapshot",
    async (name) => {
      const reader = await openManagement({ over: management.backends });
      const answer = await reader.call("/api/v1/flags", { key: project[name] });
      expect(answer.status).toBe(200);
      await reader.stop();
    },
  );
});
