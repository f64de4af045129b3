import { Page } from "../ui/page.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { FlagTrafficCard } from "./flag-traffic.tsx";
import { PlanCard } from "./plan-card.tsx";
import { RequestsByDay } from "./requests-by-day.tsx";
import { StaleFlagsCard } from "./stale-flags.tsx";
import { useUsage } from "./usage-queries.ts";

/** The usage of the organization against its plan, and the flags of the project by traffic. */
export function UsagePage() {
  const usage = useUsage();
  return (
    <Page
      title="Usage"
      lead="Requests of your organization against its plan, and evaluations of your flags."
    >
      <QueryView query={usage} label="Loading the usage">
        {(read) => (
          <>
            <PlanCard usage={read} />
            <RequestsByDay usage={read} />
          </>
        )}
      </QueryView>
      <FlagTrafficCard />
      <StaleFlagsCard />
    </Page>
  );
}
