"""Measurements that several chapters share."""
