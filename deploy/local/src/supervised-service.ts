import { type ServicePlan, type ServiceProcess, startServiceProcess } from "./service-process.ts";
import type { Note } from "./steps.ts";
import { type Supervised, type Supervision, supervise } from "./supervise.ts";

export type SupervisedService = Supervised<ServiceProcess>;

/**
 * Starts a service. While sources are watched, a service that dies waits for the next change, because
 * most deaths are then mistakes in the code being edited.
 */
export function superviseService(
  plan: ServicePlan,
  run: Supervision,
  note: Note,
): Promise<SupervisedService> {
  return supervise(
    {
      name: plan.name,
      prepare: plan.prepare,
      start: (previous) => startServiceProcess(plan, run, previous),
      ...(run.watch && {
        maxDeaths: 1,
        giveUp: (report: string) => run.steps.say(`${report}\nWaiting for a change.`),
      }),
    },
    run,
    note,
  );
}
