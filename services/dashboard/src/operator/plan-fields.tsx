import type { Plan } from "../api/schema.d.ts";
import { Select } from "../ui/fields.tsx";
import { QueryView } from "../ui/query-view.tsx";
import styles from "./operator.module.css";
import { usePlans } from "./operator-queries.ts";
import { isSmaller, limitLabels, limitNames, limitText } from "./plans.ts";

type PlanFieldsProps = { plan: string; present?: Plan; onChange: (plan: string) => void };

/** A field to choose a plan, and its limits beside those of the current plan if the organization has one. */
export function PlanFields({ plan, present, onChange }: PlanFieldsProps) {
  const plans = usePlans();
  return (
    <QueryView query={plans} label="Loading the plans">
      {(all) => {
        const next = all.find(({ name }) => name === plan);
        return (
          <>
            <Select
              label="Plan"
              value={plan}
              onChange={onChange}
              options={all.map(({ name }) => ({ value: name, label: name }))}
            />
            {next !== undefined && (
              <PlanComparison
                next={next}
                present={next.name === present?.name ? undefined : present}
              />
            )}
          </>
        );
      }}
    </QueryView>
  );
}

function PlanComparison({ present, next }: { present: Plan | undefined; next: Plan }) {
  return (
    <table className={styles.limits}>
      <thead>
        <tr>
          <th scope="col">Limit</th>
          {present !== undefined && (
            <th scope="col">
              <bdi>{present.name}</bdi> (now)
            </th>
          )}
          <th scope="col">{next.name}</th>
        </tr>
      </thead>
      <tbody>
        {limitNames.map((key) => (
          <tr key={key}>
            <th scope="row">{limitLabels[key]}</th>
            {present !== undefined && <td>{limitText(present.limits, key)}</td>}
            <td>
              {limitText(next.limits, key)}
              {present !== undefined && isSmaller(next.limits[key], present.limits[key]) && (
                <span className={styles.smaller}> smaller</span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
