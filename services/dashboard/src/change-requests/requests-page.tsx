import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ClipboardCheck } from "lucide-react";
import type { ListedChangeRequest } from "../api/schema.d.ts";
import { usePeople } from "../changes/people.ts";
import { useKeySession } from "../session/session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Checkbox, Select } from "../ui/fields.tsx";
import { Filters, Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./change-requests.module.css";
import { mayApprove } from "./may-act.ts";
import { useRequests } from "./request-queries.ts";
import {
  listedRequests,
  type RequestSearch,
  type StatusFilter,
  statusFilters,
} from "./request-search.ts";
import { isEnded, neededText, statusTexts } from "./request-status.ts";

/** The change requests of the project. Those that the reader may approve are the first. */
export function RequestsPage() {
  const search = useSearch({ from: "/change-requests" });
  const navigate = useNavigate();
  const query = useRequests(search.status ?? "pending");
  const filter = (next: RequestSearch) =>
    void navigate({ to: ".", search: (before: object) => ({ ...before, ...next }) });
  return (
    <Page
      title="Change requests"
      lead="Changes of protected environments, which other people approve before they are made."
    >
      <Filters>
        <Select<StatusFilter>
          label="Status"
          isLabelHidden
          value={search.status ?? "pending"}
          onChange={(status) => filter({ status: status === "pending" ? undefined : status })}
          options={Object.entries(statusFilters).map(([value, { label }]) => ({
            value: value as StatusFilter,
            label,
          }))}
        />
        <Checkbox
          isSelected={search.own === true}
          onChange={(own) => filter({ own: own ? true : undefined })}
        >
          Only mine
        </Checkbox>
      </Filters>
      <QueryView query={query} label="Loading the change requests">
        {({ pages }) => (
          <Requests
            requests={pages.flatMap((page) => page.change_requests)}
            search={search}
            older={
              query.hasNextPage && (
                <Button
                  onPress={() => void query.fetchNextPage()}
                  isPending={query.isFetchingNextPage}
                >
                  Load older requests
                </Button>
              )
            }
          />
        )}
      </QueryView>
    </Page>
  );
}

type RequestsProps = {
  requests: readonly ListedChangeRequest[];
  search: RequestSearch;
  older: React.ReactNode;
};

function Requests({ requests, search, older }: RequestsProps) {
  const { me } = useKeySession();
  const mayReview = (request: ListedChangeRequest) => mayApprove(request, { me });
  const listed = listedRequests(requests, search, { userId: me.user.id, mayApprove: mayReview });
  const nameOf = usePeople(listed.map(({ created_by: author }) => author));
  if (listed.length === 0)
    return (
      <>
        <EmptyState icon={ClipboardCheck} title="No change request">
          A change of a protected environment becomes a change request. Other filters show requests
          that have ended.
        </EmptyState>
        {older}
      </>
    );
  return (
    <>
      <ul className={styles.list} aria-label="Change requests">
        {listed.map((request) => (
          <RequestItem
            key={request.id}
            request={request}
            author={nameOf(request.created_by)}
            isForReader={mayReview(request)}
          />
        ))}
      </ul>
      {older}
    </>
  );
}

type ItemProps = { request: ListedChangeRequest; author: string; isForReader: boolean };

function RequestItem({ request, author, isForReader }: ItemProps) {
  const { id, title, status, needed, summary, apply_at: at, bypass_reason: bypass } = request;
  const { label, tone } = statusTexts[status];
  return (
    <li className={styles.item}>
      <div className={styles.head}>
        <Link
          to="/change-requests/$requestId"
          params={{ requestId: id }}
          className={styles.title ?? ""}
        >
          {title}
        </Link>
        <Badge tone={tone}>{label}</Badge>
        {bypass !== null && <Badge tone="danger">Approval bypassed</Badge>}
        {isForReader && <Badge tone="accent">You can approve</Badge>}
      </div>
      {summary !== title && <p className={styles.summary}>{summary}</p>}
      <p className={styles.note}>
        By {author}, <Time at={request.created_at} />
        {!isEnded(request) && needed.length > 0 && ` · ${needed.map(neededText).join(" · ")}`}
        {!isEnded(request) && at !== null && (
          <>
            {" "}
            · applied <Time at={at} />
          </>
        )}
      </p>
    </li>
  );
}
