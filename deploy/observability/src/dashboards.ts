/** A query of Prometheus. In the legend, `{{label}}` is replaced by the value of a label. */
type Query = {
  expression: string;
  legend: string;
  /** Shows the exemplars of the metric: points that link to traces. */
  exemplars?: boolean;
};

/** Units of Grafana: `short` is a plain number, `percentunit` a share of 1. */
type Unit = "short" | "s" | "bytes" | "reqps" | "ops" | "percentunit";

export type Panel = { title: string; description: string; unit: Unit; queries: readonly Query[] };

export type DashboardDefinition = { uid: string; title: string; panels: readonly Panel[] };

const rate = (metric: string, by?: string) =>
  `sum${by === undefined ? "" : ` by (${by})`} (rate(${metric}[$__rate_interval]))`;

const sum = (metric: string, by: string) => `sum by (${by}) (${metric})`;

/** Median and 99th percentile of a histogram. */
const quantiles = (histogram: string): Query[] =>
  [0.5, 0.99].map((quantile) => ({
    expression: `histogram_quantile(${quantile}, ${rate(`${histogram}_bucket`, "le")})`,
    legend: quantile === 0.5 ? "median" : "99th percentile",
  }));

/** Shows the exemplars once, with the last of the queries. */
const withExemplars = (queries: readonly Query[]): Query[] =>
  queries.map((each, at) => (at === queries.length - 1 ? { ...each, exemplars: true } : each));

const panel = (title: string, unit: Unit, description: string, ...queries: Query[]): Panel => ({
  ...{ title, unit, description, queries },
});

const query = (expression: string, legend: string): Query => ({ expression, legend });

const traffic: DashboardDefinition = {
  uid: "halyard-traffic",
  title: "Halyard: traffic",
  panels: [
    panel(
      "SDK responses",
      "reqps",
      "Responses of the edges to SDKs. 304 means that nothing has changed.",
      query(rate("halyard_sdk_responses_total", "endpoint, status"), "{{endpoint}} {{status}}"),
    ),
    panel(
      "Requests by service",
      "reqps",
      "Requests to the other routes of each service.",
      query("service:halyard_http_requests:rate5m", "{{service}}"),
    ),
    panel(
      "Share of server errors",
      "percentunit",
      "HalyardServerErrors fires above 5%.",
      query("service:halyard_http_requests_failed:ratio_rate5m", "{{service}}"),
    ),
    panel(
      "Duration of requests, 99th percentile",
      "s",
      "From the headers of the request to the last byte of the response.",
      query("service:halyard_http_request_duration_seconds:p99_5m", "{{service}}"),
    ),
    panel(
      "Rejected at a plan's limit",
      "reqps",
      "Requests above the month's limit, and streams above the limit of open streams.",
      query(rate("halyard_usage_rejected_requests_total"), "requests"),
      query(rate("halyard_stream_slot_requests_rejected_total"), "streams"),
    ),
    panel(
      "Costly evaluations",
      "short",
      "Evaluations that wait for a turn, and those rejected with 503 in a second.",
      query("sum(halyard_costly_evaluations_waiting)", "waiting"),
      query(rate("halyard_costly_evaluations_rejected_total"), "rejected"),
    ),
    panel(
      "Connections closed at a limit",
      "ops",
      "`total` is a process's limit, `address` that of one client.",
      query(rate("halyard_connections_rejected_total", "service, limit"), "{{service}} {{limit}}"),
    ),
    panel(
      "HAProxy: requests",
      "reqps",
      "Empty where another proxy is used.",
      query(rate("haproxy_frontend_http_requests_total", "proxy"), "{{proxy}}"),
    ),
    panel(
      "HAProxy: processes that it reaches",
      "short",
      "HalyardGatewayWithoutProcesses fires at 0.",
      query("max by (proxy) (haproxy_backend_active_servers)", "{{proxy}}"),
    ),
  ],
};

const propagation: DashboardDefinition = {
  uid: "halyard-propagation",
  title: "Halyard: propagation",
  panels: [
    panel(
      "From the commit of a change to the open streams",
      "s",
      "Measured on each edge, for changes with open streams. Points are changes with a trace.",
      ...withExemplars(quantiles("halyard_change_propagation_seconds")),
    ),
    panel(
      "Age of the snapshot",
      "s",
      "Since an edge last knew that it has every change. HalyardEdgeStale fires above 60 s.",
      query("halyard_snapshot_age_seconds", "{{instance}}"),
    ),
    panel(
      "Followers that are current",
      "short",
      "1 while a process has read all of a stream.",
      query("min by (service, stream) (halyard_follower_current)", "{{service}} {{stream}}"),
    ),
    panel(
      "Source of the snapshot",
      "short",
      "Edges by the place that their flags come from.",
      query(sum("halyard_snapshot_source", "source"), "{{source}}"),
    ),
    panel(
      "Writes answered before they were in effect",
      "ops",
      "By the step that was not complete after 500 ms.",
      query(rate("halyard_writes_unconfirmed_total", "step"), "{{step}}"),
    ),
    panel(
      "Live edges",
      "short",
      "Edges that the responses to writes wait for.",
      query("max(halyard_live_edges)", "edges"),
    ),
    panel(
      "Entries of the snapshot",
      "short",
      "Entries that an edge holds, by kind, and those of audiences' lists.",
      query("max by (kind) (halyard_snapshot_entries)", "{{kind}}"),
      query("max(halyard_audience_list_entries)", "entries of lists"),
    ),
    panel(
      "Rejected entries",
      "ops",
      "Entries of another form, and entries whose signature is missing or invalid.",
      query(rate("halyard_snapshot_entries_rejected_total"), "form"),
      query(
        rate("halyard_snapshot_signatures_rejected_total", "service"),
        "signature, {{service}}",
      ),
    ),
    panel(
      "Restarts of followers",
      "ops",
      "Followers that were not current while NATS was connected.",
      query(rate("halyard_follower_restarts_total", "service, stream"), "{{service}} {{stream}}"),
    ),
  ],
};

const streams: DashboardDefinition = {
  uid: "halyard-streams",
  title: "Halyard: streams",
  panels: [
    panel(
      "Open streams",
      "short",
      "Of each edge. An edge is sized for 10,000.",
      query("halyard_streams_open", "{{instance}}"),
    ),
    panel(
      "Events sent",
      "ops",
      "Events written to open streams.",
      query(rate("halyard_stream_events_sent_total", "event"), "{{event}}"),
    ),
    panel(
      "Ended streams",
      "ops",
      "By cause. `slow_reader` is a client that did not read.",
      query(rate("halyard_streams_closed_total", "cause"), "{{cause}}"),
    ),
    panel(
      "Streams of the other edges",
      "short",
      "As each edge knows them, for the limits of plans.",
      query("halyard_stream_slots_other_streams", "streams, {{instance}}"),
      query("halyard_stream_slots_other_edges", "edges, {{instance}}"),
    ),
    panel(
      "Streams of changes",
      "short",
      "Open dashboards and other readers of changes, by process of management.",
      query("halyard_change_streams_open", "{{instance}}"),
    ),
  ],
};

const relay: DashboardDefinition = {
  uid: "halyard-relay",
  title: "Halyard: relay and outbox",
  panels: [
    panel(
      "Oldest unsent message",
      "s",
      "HalyardOutboxDelayed fires above 5 s.",
      query("max(halyard_outbox_oldest_message_age_seconds)", "age"),
    ),
    panel(
      "Unsent messages",
      "short",
      "Counted up to 10,000.",
      query("max(halyard_outbox_unsent_messages)", "messages"),
    ),
    panel(
      "Published messages",
      "ops",
      "Messages that the leader sends to NATS.",
      query(rate("halyard_relay_messages_published_total", "instance"), "{{instance}}"),
    ),
    panel(
      "Leaders",
      "short",
      "Exactly one process of management publishes.",
      query("sum(halyard_relay_leader)", "leaders"),
    ),
    panel(
      "Failures of the relay",
      "ops",
      "Synchronizations after a failure, and rebuilds after the database was restored.",
      query(rate("halyard_relay_failures_total"), "synchronizations"),
      query(rate("halyard_relay_stream_rebuilds_total"), "rebuilds"),
    ),
    panel(
      "Event log",
      "bytes",
      "HalyardEventLogFull fires at 80% of the limit.",
      query("max(halyard_event_log_size_bytes)", "size"),
      query("max(halyard_event_log_size_limit_bytes)", "limit"),
    ),
    panel(
      "Unprocessed events",
      "short",
      "Events that webhook dispatchers have not processed, and organizations whose events wait for that.",
      query("max(halyard_event_log_unprocessed_events)", "events"),
      query("max(halyard_event_log_waiting_organizations)", "organizations"),
    ),
    panel(
      "Messages processed",
      "ops",
      "By queue. `set_aside` is dead-lettered, `forged` has no valid signature.",
      query(
        rate("halyard_queue_messages_processed_total", "queue, outcome"),
        "{{queue}} {{outcome}}",
      ),
    ),
    panel(
      "Repeated attempts",
      "ops",
      "Failed attempts to process a message, because of an outage or of the message.",
      query(rate("halyard_queue_retries_total", "queue, cause"), "{{queue}} {{cause}}"),
    ),
  ],
};

const webhooks: DashboardDefinition = {
  uid: "halyard-webhooks",
  title: "Halyard: webhooks",
  panels: [
    panel(
      "From the event to the first attempt",
      "s",
      "HalyardWebhooksLate fires above 5 s.",
      ...quantiles("halyard_webhook_first_attempt_delay_seconds"),
    ),
    panel(
      "Deliveries",
      "ops",
      "By the status after an attempt. `claim_lost` means that another process continued it.",
      query(rate("halyard_webhook_deliveries_total", "status"), "{{status}}"),
    ),
    panel(
      "Duration of attempts, 99th percentile",
      "s",
      "By outcome. An attempt ends after 30 s at the latest.",
      query(
        `histogram_quantile(0.99, ${rate("halyard_webhook_attempt_duration_seconds_bucket", "le, outcome")})`,
        "{{outcome}}",
      ),
    ),
    panel(
      "Attempts in progress",
      "short",
      "By kind. Slow targets use a separate limit.",
      query(sum("halyard_webhook_attempts_in_progress", "kind"), "{{kind}}"),
    ),
  ],
};

const schedules: DashboardDefinition = {
  uid: "halyard-schedules",
  title: "Halyard: schedules",
  panels: [
    panel(
      "From the due time to the effect",
      "s",
      "Of scheduled changes that were applied.",
      ...quantiles("halyard_scheduled_change_lateness_seconds"),
    ),
    panel(
      "Ended scheduled changes",
      "ops",
      "By outcome. The reason of a failed one is in the schedule.",
      query(rate("halyard_scheduled_changes_total", "outcome"), "{{outcome}}"),
    ),
    panel(
      "Longest overdue change",
      "s",
      "HalyardSchedulesOverdue fires above 5 s.",
      query("max(halyard_scheduled_change_overdue_seconds)", "overdue"),
    ),
  ],
};

const usage: DashboardDefinition = {
  uid: "halyard-usage",
  title: "Halyard: usage",
  panels: [
    panel(
      "Counted requests",
      "reqps",
      "Requests of SDKs that usage-metering has counted, and those that edges have collected for it.",
      query(rate("halyard_usage_requests_total", "endpoint"), "{{endpoint}}"),
      query(rate("halyard_usage_collected_requests_total"), "collected by edges"),
    ),
    panel(
      "From a use to its count",
      "s",
      "HalyardUsageLate fires above 5 s.",
      ...quantiles("halyard_usage_lag_seconds"),
    ),
    panel(
      "Uncounted requests on edges",
      "short",
      "Collected requests that NATS has not acknowledged.",
      query("halyard_usage_unacknowledged_requests", "{{instance}}"),
    ),
    panel(
      "Messages with usage",
      "ops",
      "Sent by edges, and received by usage-metering. A repeated message adds nothing.",
      query(rate("halyard_usage_messages_sent_total", "outcome"), "sent, {{outcome}}"),
      query(rate("halyard_usage_messages_received_total", "outcome"), "received, {{outcome}}"),
    ),
    panel(
      "Reports of evaluations",
      "ops",
      "Reports that applications send about their evaluations.",
      query(rate("halyard_usage_reports_received_total", "outcome"), "{{outcome}}"),
    ),
    panel(
      "Lost or misdated usage",
      "ops",
      "Usage without room, and requests of an edge whose clock is implausible.",
      query(rate("halyard_usage_dropped_total", "kind"), "dropped {{kind}}"),
      query(rate("halyard_usage_misdated_requests_total"), "misdated requests"),
    ),
    panel(
      "Quotas",
      "short",
      "1 while an edge knows the usage of all organizations.",
      query("min by (instance) (halyard_quota_current)", "{{instance}}"),
    ),
    panel(
      "Published quotas",
      "ops",
      "`repaired` ones were behind the database.",
      query(rate("halyard_quota_published_total"), "published"),
      query(rate("halyard_quota_repaired_total"), "repaired"),
    ),
    panel(
      "Clean-up",
      "ops",
      "Rows older than their retention, and hours that were added to days.",
      query(rate("halyard_retention_rows_removed_total", "table"), "removed from {{table}}"),
      query(rate("halyard_usage_hours_rolled_up_total"), "hours"),
    ),
  ],
};

const backends: DashboardDefinition = {
  uid: "halyard-backends",
  title: "Halyard: processes and backends",
  panels: [
    panel(
      "Processes",
      "short",
      "Processes that Prometheus reaches.",
      query("count by (service) (process_start_time_seconds)", "{{service}}"),
    ),
    panel(
      "Connected to NATS",
      "short",
      "1 while a process is connected.",
      query("halyard_nats_connected", "{{service}} {{instance}}"),
    ),
    panel(
      "CPU",
      "short",
      "In cores. A process of Node.js uses little more than one.",
      query(rate("process_cpu_seconds_total", "service, instance"), "{{service}} {{instance}}"),
    ),
    panel(
      "Memory",
      "bytes",
      "Resident memory of each process.",
      query("process_resident_memory_bytes", "{{service}} {{instance}}"),
    ),
    panel(
      "Delay of the event loop, 99th percentile",
      "s",
      "Waiting time of ready work in a process of Node.js.",
      query("nodejs_eventloop_lag_p99_seconds", "{{service}} {{instance}}"),
    ),
    panel(
      "Open files",
      "short",
      "Sockets and files of each process.",
      query("process_open_fds", "{{service}} {{instance}}"),
    ),
  ],
};

/** The dashboards, one for each question of an operator. */
export const dashboards: readonly DashboardDefinition[] = [
  traffic,
  propagation,
  streams,
  relay,
  webhooks,
  schedules,
  usage,
  backends,
];
