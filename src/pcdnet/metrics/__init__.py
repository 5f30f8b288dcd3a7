"""Metrics: how well what was found agrees with the ground truth, pixel by pixel and object by object."""

from pcdnet.metrics.detection import DetectionScores, average_precision, class_purity, score_detections
from pcdnet.metrics.matching import Found, Matches, box_iou, found_objects, match, match_scene
from pcdnet.metrics.poses import angle_errors, typical_ratio, upright
from pcdnet.metrics.segmentation import (
    Labels,
    Scores,
    adjusted_rand_index,
    combined,
    foreground_ari,
    mask_iou,
    mean_iou,
    score,
)

__all__ = [
    "DetectionScores",
    "Found",
    "Labels",
    "Matches",
    "Scores",
    "adjusted_rand_index",
    "angle_errors",
    "average_precision",
    "box_iou",
    "class_purity",
    "combined",
    "foreground_ari",
    "found_objects",
    "mask_iou",
    "match",
    "match_scene",
    "mean_iou",
    "score",
    "score_detections",
    "typical_ratio",
    "upright",
]
