-- Up Migration

-- `npm run doctor` reports keys that end soon. It reads no digest and no owner. The setup makes its role.
do $$
begin
  if exists (select from pg_roles where rolname = 'halyard_doctor') then
    grant select (id, name, kind, environment_id, expires_at, revoked_at) on api_keys to halyard_doctor;
  end if;
end
$$;
