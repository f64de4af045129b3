import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, seedProject } from "../management-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);

describe("given a seeded project", () => {
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
