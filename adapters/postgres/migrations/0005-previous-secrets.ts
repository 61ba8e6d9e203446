import type { Migration } from '../migrate.ts';

/**
 * Every secret of an exporter that was changed, with its own end, the latest first: `[{ "sealed": …, "until": … }]`.
 *
 * The two columns for a single one stay for processes of the version before, which may work beside those of this one: a trigger brings
 * what either version writes to the columns of the other. It fires for statements that name one of its columns only.
 */
export const previousSecrets: Migration = {
    id: '0005-previous-secrets',
    sql: `
alter table scanwire.exporters add column previous_secrets jsonb not null default '[]';

update scanwire.exporters
set previous_secrets = jsonb_build_array(jsonb_build_object('sealed', sealed_previous_secret, 'until', previous_secret_until))
where sealed_previous_secret is not null and previous_secret_until is not null;

create function scanwire.share_previous_secrets()
returns trigger
language plpgsql
as $$
begin
    if new.previous_secrets is distinct from old.previous_secrets then
        new.sealed_previous_secret := new.previous_secrets #>> '{0,sealed}';
        new.previous_secret_until := new.previous_secrets #>> '{0,until}';
    elsif new.sealed_previous_secret is distinct from old.sealed_previous_secret and new.sealed_previous_secret is not null then
        new.previous_secrets := jsonb_build_array(
            jsonb_build_object('sealed', new.sealed_previous_secret, 'until', new.previous_secret_until)
        ) || new.previous_secrets;
    end if;
    return new;
end
$$;

create trigger share_previous_secrets
before update of previous_secrets, sealed_previous_secret on scanwire.exporters
for each row execute function scanwire.share_previous_secrets();
`,
};
