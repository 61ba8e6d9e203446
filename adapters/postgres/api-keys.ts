import { UNSCOPED } from '../../lib/keys/scopes.ts';
import { type ApiKeyStore, apiKeyExists, type StoredApiKey } from '../../lib/keys/store.ts';
import { assertStoreOptions, IMPATIENT, type PoolLike, type PreparingOptions, patiently, uuidOrNull } from './database.ts';
import { isUniqueViolation, unreadableTimes } from './database-errors.ts';
import { prepared } from './prepared.ts';
import { databaseTime } from './store-clock.ts';

/** Where the keys are. */
export interface PostgresApiKeysOptions extends PreparingOptions {
    /** Its schema brought up to date by `migrate(pool)`. */
    readonly pool: PoolLike;
}

const COLUMNS = `id, name, digest, start, sealed,
    created_at as "createdAt", last_used_at as "lastUsedAt", revoked_at as "revokedAt", scopes,
    workspaces, expires_at as "expiresAt", coalesce(expires_at <= scanwire.now(), false) as expired, revoked_at is not null as "isRevoked"`;

const BY_DIGEST = prepared(`select ${COLUMNS} from scanwire.api_keys where digest = $1`);
const BY_DIGESTS = prepared(`select ${COLUMNS} from scanwire.api_keys where digest = any($1)`);

interface Row extends StoredApiKey {
    readonly isRevoked: boolean;
}

/** @throws ScanwireError `MISCONFIGURED` where a session writes times as nobody here reads them: the key would be taken for one that was never revoked. */
function keyOf({ isRevoked, ...key }: Row): StoredApiKey {
    if (isRevoked && key.revokedAt === null) {
        throw unreadableTimes();
    }
    return key;
}

/** API keys in the table `scanwire.api_keys`. */
export function postgresApiKeys(options: PostgresApiKeysOptions): ApiKeyStore {
    assertStoreOptions(options, 'postgresApiKeys');
    const { pool, prepare = true } = options;
    const database = patiently(pool, IMPATIENT, { prepare });

    async function read(statement: string, values: unknown[]): Promise<readonly StoredApiKey[]> {
        const { rows } = await database.query<Row>(statement, values);
        return rows.map(keyOf);
    }

    async function find(statement: string, value: string | null): Promise<StoredApiKey | null> {
        return (await read(statement, [value]))[0] ?? null;
    }

    return {
        keepsScopes: true,
        keepsLimits: true,
        now: () => databaseTime(database),

        async insert({ id, name, digest, start, sealed, createdAt, lastUsedAt, revokedAt, ...may }) {
            const { scopes = UNSCOPED, workspaces = null, expiresAt = null } = may;
            try {
                await database.query(
                    `insert into scanwire.api_keys
                     (id, name, digest, start, sealed, created_at, last_used_at, revoked_at, scopes, workspaces, expires_at)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
                    [id, name, digest, start, sealed, createdAt, lastUsedAt, revokedAt, scopes, workspaces, expiresAt],
                );
            } catch (error) {
                throw isUniqueViolation(error) ? apiKeyExists(error) : error;
            }
        },

        findByDigest: (digest) => find(BY_DIGEST, digest),
        async findByDigests(digests) {
            const found = new Map((await read(BY_DIGESTS, [digests])).map((key) => [key.digest, key]));
            return digests.map((digest) => found.get(digest) ?? null);
        },

        get: (id) => find(`select ${COLUMNS} from scanwire.api_keys where id = $1`, uuidOrNull(id)),

        async list() {
            return await read(`select ${COLUMNS} from scanwire.api_keys order by created_at, id`, []);
        },

        async sealedSamples() {
            const sealingKey = `split_part(sealed, '.', 2)`;
            const { rows } = await database.query<Pick<StoredApiKey, 'id' | 'sealed'>>(
                `select distinct on (${sealingKey}) id, sealed from scanwire.api_keys where sealed is not null
                 order by ${sealingKey}, created_at, id`,
            );
            return rows;
        },

        async sealedByOthers(current, after, limit) {
            const { rows } = await database.query<Pick<StoredApiKey, 'id' | 'sealed'>>(
                `select id, sealed from scanwire.api_keys
                 where sealed like 'v1.%' and split_part(sealed, '.', 2) <> $1 and ($2::uuid is null or id > $2) order by id limit $3`,
                [current, uuidOrNull(after ?? ''), limit],
            );
            return rows;
        },

        async reseal(keys) {
            await database.query(
                `update scanwire.api_keys k set sealed = n.sealed
                 from unnest($1::uuid[], $2::text[]) n (id, sealed) where k.id = n.id`,
                [keys.map(({ id }) => id), keys.map(({ sealed }) => sealed)],
            );
        },

        async revoke(id, at) {
            const sql = 'update scanwire.api_keys set revoked_at = $2 where id = $1 and revoked_at is null';
            return (await database.query(sql, [uuidOrNull(id), at])).rowCount === 1;
        },

        async touch(id, at) {
            const sql = 'update scanwire.api_keys set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $2)';
            await database.query(sql, [uuidOrNull(id), at]);
        },
    };
}
