import t from 'tap';
import { readsOfCrowdedHosts } from './crowded-hosts.ts';

// The planner knows of tables that are empty, or that all their rows are those of one host.
readsOfCrowdedHosts(t, (pool) => pool.query('analyze'));
