import type { ReactNode } from "react";
import { ErrorPanel } from "./error-panel.tsx";
import { Loading } from "./panels.tsx";

/**
 * Shows the result of a query: progress, then the data. A failed refresh keeps the data and shows the error above it.
 */
export function QueryView<Data>({
  query,
  label,
  children,
}: {
  /** A query, or an infinite query. */
  query: { data: Data | undefined; error: Error | null; refetch: () => Promise<unknown> };
  /** Text of the progress, such as "Loading the flags". */
  label: string;
  children: (data: Data) => ReactNode;
}) {
  const retry = () => void query.refetch();
  if (query.data === undefined)
    return query.error ? (
      <ErrorPanel error={query.error} onRetry={retry} />
    ) : (
      <Loading label={label} />
    );
  return (
    <>
      {query.error !== null && <ErrorPanel error={query.error} onRetry={retry} />}
      {children(query.data)}
    </>
  );
}
