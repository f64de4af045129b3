import type { Reaper } from "@halyard/local-backends";
import { type Ending, endWith } from "./ending.ts";
import type { Releasers } from "./releasers.ts";
import {
  describeDeath,
  type ServicePlan,
  type ServiceProcess,
  startServiceProcess,
} from "./service-process.ts";
import type { Steps } from "./steps.ts";

/**
 * A service under our eyes. Without watching, its death ends the run. With watching it is restarted
 * when its sources change, on the same port, so that the gateway still finds it; if it dies, say by a
 * slip while editing, that is shown, and the next change starts it again.
 */
export type SupervisedService = {
  current(): ServiceProcess;
  restart(): Promise<void>;
};

export type Supervision = {
  projectDir: string;
  logsDir: string;
  reaper: Reaper;
  releasers: Releasers;
  ending: Ending;
  steps: Steps;
  watch: boolean;
};

export async function superviseService(
  plan: ServicePlan,
  context: Supervision,
): Promise<SupervisedService> {
  let current = await startServiceProcess(plan, context);
  const port = Number(new URL(current.url).port);
  await context.releasers.add(() => current.stop());
  let stopping = false;
  const lookAfter = (service: ServiceProcess) => {
    if (!context.watch) {
      endWith(context.ending, service);
      return;
    }
    void service.exited.then((status) => {
      if (stopping || context.ending.hasSettled()) return;
      context.steps.say(
        `${describeDeath(plan.name, status, service.logFile)}\nWaiting for a change.`,
      );
    });
  };
  lookAfter(current);
  return {
    current: () => current,
    async restart() {
      stopping = true;
      await current.stop();
      stopping = false;
      if (context.ending.hasSettled()) return;
      current = await startServiceProcess({ ...plan, port }, context);
      lookAfter(current);
    },
  };
}
