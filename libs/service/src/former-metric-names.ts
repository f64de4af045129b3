/** Names of metrics in release 0.1.0, by their current names. They are exposed for one more release. */
export const formerMetricNames: Readonly<Record<string, string>> = {
  halyard_relay_leader: "halyard_relay_leading",
  halyard_relay_messages_published_total: "halyard_relay_published_total",
  halyard_relay_failures_total: "halyard_relay_rounds_failed_total",
  halyard_relay_stream_rebuilds_total: "halyard_relay_database_behind_total",
  halyard_outbox_unsent_messages: "halyard_outbox_unsent",
  halyard_outbox_oldest_message_age_seconds: "halyard_outbox_oldest_unsent_seconds",
  halyard_event_log_size_bytes: "halyard_flag_events_bytes",
  halyard_event_log_size_limit_bytes: "halyard_flag_events_max_bytes",
  halyard_event_log_unprocessed_events: "halyard_flag_events_unread",
  halyard_writes_unconfirmed_total: "halyard_write_waits_incomplete_total",
  halyard_gateway_rejected_total: "halyard_gateway_rejections_total",
  halyard_snapshot_signatures_rejected_total: "halyard_key_entries_rejected_total",
  halyard_snapshot_entries_rejected_total: "halyard_edge_entries_rejected_total",
  halyard_snapshot_source: "halyard_edge_snapshot_source",
  halyard_snapshot_age_seconds: "halyard_edge_snapshot_stale_seconds",
  halyard_snapshot_entries: "halyard_edge_snapshot_entries",
  halyard_change_propagation_seconds: "halyard_edge_propagation_seconds",
  halyard_sdk_responses_total: "halyard_edge_answers_total",
  halyard_costly_evaluations_waiting: "halyard_edge_evaluations_waiting",
  halyard_costly_evaluations_rejected_total: "halyard_edge_evaluations_rejected_total",
  halyard_streams_closed_total: "halyard_edge_streams_closed_total",
  halyard_streams_open: "halyard_edge_streams",
  halyard_stream_events_sent_total: "halyard_edge_stream_events_total",
  halyard_scheduled_change_lateness_seconds: "halyard_schedule_lateness_seconds",
  halyard_scheduled_change_overdue_seconds: "halyard_schedule_overdue_seconds",
  halyard_webhook_attempt_duration_seconds: "halyard_webhook_attempt_seconds",
  halyard_webhook_first_attempt_delay_seconds: "halyard_webhook_first_attempt_wait_seconds",
  halyard_webhook_attempts_in_progress: "halyard_webhook_attempts_under_way",
  halyard_queue_messages_processed_total: "halyard_queue_messages_total",
  halyard_usage_collected_requests_total: "halyard_edge_usage_requests_total",
  halyard_usage_unacknowledged_requests: "halyard_edge_usage_waiting_requests",
  halyard_usage_messages_sent_total: "halyard_edge_usage_messages_total",
  halyard_usage_dropped_total: "halyard_edge_usage_dropped_total",
  halyard_usage_rejected_requests_total: "halyard_edge_usage_refused_total",
  halyard_quota_current: "halyard_edge_quota_current",
  halyard_stream_slot_lease_held: "halyard_edge_slots_lease",
  halyard_stream_slots_held: "halyard_edge_slots_held",
  halyard_stream_slot_requests_waiting: "halyard_edge_slots_waiting",
  halyard_stream_slot_requests_rejected_total: "halyard_edge_slots_refused_total",
  halyard_stream_slot_claims_retried_total: "halyard_edge_slots_claims_retried_total",
  halyard_usage_messages_received_total: "halyard_usage_messages_total",
  halyard_quota_published_total: "halyard_usage_quota_published_total",
  halyard_quota_repaired_total: "halyard_usage_quota_repaired_total",
  halyard_usage_hours_rolled_up_total: "halyard_usage_rolled_up_hours_total",
  halyard_retention_rows_removed_total: "halyard_retention_removed_rows_total",
};

/** Appends every renamed metric in Prometheus' text format under its former name. */
export function withFormerNames(text: string, formerNames = formerMetricNames): string {
  const renamed = text.split("\n\n").flatMap((metric) => {
    const [, name] = /^# HELP (\w+)/.exec(metric.trimStart()) ?? [];
    const former = name === undefined ? undefined : formerNames[name];
    if (name === undefined || former === undefined) return [];
    const samples = metric.replaceAll(new RegExp(`^(# TYPE )?${name}`, "gm"), `$1${former}`);
    return [samples.replace(/^# HELP .*$/m, `# HELP ${former} Deprecated: use ${name}.`).trim()];
  });
  return renamed.length === 0 ? text : `${text}\n${renamed.join("\n\n")}\n`;
}
