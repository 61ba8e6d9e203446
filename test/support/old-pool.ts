import pg from 'pg';

/** A pool as older versions of `pg` have them: it takes no notice of `onConnect`. */
export class OldPool extends pg.Pool {
    constructor({ onConnect: _, ...options }: pg.PoolConfig) {
        super(options);
    }
}
