import type { SetSchedule } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { ProtectedEnvironment } from "@halyard/people";

/**
 * Rejects a schedule that management would refuse when it is due, because the environment is protected. Management
 * decides again at that time: the protection can change until then, and another flag can require that this one is off.
 */
export function checkProtection(
  environment: ProtectedEnvironment | undefined,
  { enable_at: enableAt }: SetSchedule,
): Problem | undefined {
  if (environment === undefined) return undefined;
  const { name, without_approval: exceptions } = environment;
  const mayTurnOff = exceptions.includes("off");
  if (mayTurnOff && (enableAt ?? null) === null) return undefined;
  const advice = mayTurnOff ? " A schedule can only turn flags off there." : "";
  return createProblem(
    "APPROVAL_001",
    `${name} is protected: this change needs an approved change request.${advice} Make a change request with /apply_at instead.`,
  );
}
