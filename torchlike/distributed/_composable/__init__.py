"""The place of fully_shard in older programs."""
